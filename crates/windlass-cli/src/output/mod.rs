//! What the program says: data to stdout, everything else to stderr.

pub mod table;
pub mod text;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// How to speak, decided once.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact about where the output goes")]
pub struct Output {
    form: Form,
    quiet: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    colour: bool,
}

/// For people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines and tables.
    Text,
    /// One JSON value.
    Json,
}

impl Output {
    /// Looks at the terminal and at NO_COLOR.
    pub fn new(form: Form, quiet: bool) -> Self {
        let stdout_is_terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            form,
            quiet,
            stdout_is_terminal,
            stderr_is_terminal: io::stderr().is_terminal(),
            colour: stdout_is_terminal && !no_color,
        }
    }

    /// Whether programs read this.
    pub fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// Whether only data and errors are wanted.
    pub fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether a person sees stdout.
    pub fn is_terminal(self) -> bool {
        self.stdout_is_terminal
    }

    /// One line of data.
    #[expect(clippy::unused_self, reason = "everything that is said goes through an Output")]
    pub fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_ref().as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }

    /// One JSON value: on one line, so that a loop can read many.
    pub fn json(self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(self.line(serde_json::to_string(value)?)?)
    }

    /// Something worth knowing that is not data.
    pub fn note(self, text: impl AsRef<str>) {
        if !self.quiet {
            say(text.as_ref());
        }
    }

    /// A hint at the next command; only for a person.
    pub fn tip(self, text: impl AsRef<str>) {
        if self.stderr_is_terminal && !self.is_json() {
            self.note(text);
        }
    }

    /// Something that is probably not meant.
    #[expect(clippy::unused_self, reason = "everything that is said goes through an Output")]
    pub fn warn(self, text: impl AsRef<str>) {
        say(&format!("warning: {}", text::clean(text.as_ref())));
    }

    /// Progress on one line that is written over and over; only on a terminal.
    pub fn progress(self, text: impl AsRef<str>) {
        if self.stderr_is_terminal && !self.quiet {
            // Nothing can be done about a terminal that is gone.
            let _ = write!(io::stderr(), "\r\x1b[2K{}", text.as_ref());
        }
    }

    /// Removes the progress line.
    pub fn end_progress(self) {
        self.progress("");
    }

    /// Whether a person watches progress.
    pub fn shows_progress(self) -> bool {
        self.stderr_is_terminal && !self.quiet
    }

    /// Several lines of progress that are drawn over each other. The cursor stays at their start, and a line that is longer than
    /// the terminal is wide is cut, so that the next drawing lies exactly over this one.
    pub fn draw_block(self, lines: &[String]) {
        self.end_block(lines);
        if self.shows_progress() && !lines.is_empty() {
            let _ = write!(io::stderr(), "\x1b[{}A", lines.len());
        }
    }

    /// Draws such lines for the last time; what is said next comes below them.
    pub fn end_block(self, lines: &[String]) {
        if self.shows_progress() {
            let end = if lines.is_empty() { "" } else { "\r\n" };
            // Nothing can be done about a terminal that is gone.
            let _ = write!(io::stderr(), "\x1b[?7l\r\x1b[J{}{end}\x1b[?7h", lines.join("\r\n"));
        }
    }

    /// A yes/no question. Without a terminal there is nobody to ask: the caller must have said `--yes`.
    pub fn confirm(self, question: &str) -> anyhow::Result<bool> {
        if !(self.stderr_is_terminal && io::stdin().is_terminal()) {
            return Err(Failure::usage(format!("{question} Nobody is there to answer."))
                .hint("add --yes, or --dry-run to see how many it would be")
                .into());
        }
        write!(io::stderr(), "{question} [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Text in a colour, where there are colours.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        if self.colour { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
    }
}

/// Colours that are readable on dark and on light.
#[derive(Debug, Clone, Copy)]
pub enum Colour {
    /// Failed.
    Red = 31,
    /// Well.
    Green = 32,
    /// To look at.
    Yellow = 33,
    /// Under way.
    Cyan = 36,
    /// Beside the point.
    Dim = 2,
}

/// The error and its hint.
pub fn report(failure: &Failure) {
    say(&format!("error: {}", text::clean(&failure.message)));
    if let Some(hint) = &failure.hint {
        say(&format!("hint: {}", text::clean(hint)));
    }
}

/// Writes a line to stderr. If stderr is gone nobody can be told.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
