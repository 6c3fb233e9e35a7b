//! The program's output: data to stdout, everything else to stderr.
//!
//! All text passes [`safe`], also where a command forgot to clean it. A name or an error from an attacker
//! therefore cannot forge a line, move the cursor or reverse the direction of text. Only JSON stays
//! exact: programs read it.

pub mod table;
pub mod text;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// How to print, decided once at the start.
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

    /// Whether the output is for programs.
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
    pub fn line(self, text: impl AsRef<str>) -> io::Result<()> {
        write_line(&safe(text.as_ref(), self.colour))
    }

    /// One JSON value: on one line, so that a loop can read many.
    #[expect(clippy::unused_self, reason = "everything that is said goes through an Output")]
    pub fn json(self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(write_line(&serde_json::to_string(value)?)?)
    }

    /// Lines for another program, as they are. A terminal gets them escaped.
    pub fn lines(self, lines: &[u8]) -> io::Result<()> {
        if self.stdout_is_terminal {
            return self.page(&String::from_utf8_lossy(lines));
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(lines)?;
        stdout.flush()
    }

    /// A text of this program with lines of its own, such as a generated page.
    #[expect(clippy::unused_self, reason = "everything that is said goes through an Output")]
    pub fn page(self, text: &str) -> io::Result<()> {
        text.lines().try_for_each(|line| write_line(&safe(line, false)))
    }

    /// A note that is not data.
    pub fn note(self, text: impl AsRef<str>) {
        if !self.quiet {
            say(text.as_ref());
        }
    }

    /// A hint at the next command; only on a terminal.
    pub fn tip(self, text: impl AsRef<str>) {
        if self.stderr_is_terminal && !self.is_json() {
            self.note(text);
        }
    }

    /// A warning: something is probably not as the user meant it.
    #[expect(clippy::unused_self, reason = "everything that is said goes through an Output")]
    pub fn warn(self, text: impl AsRef<str>) {
        say(&format!("warning: {}", text.as_ref()));
    }

    /// Progress on one line that is overwritten; only on a terminal.
    pub fn progress(self, text: impl AsRef<str>) {
        if self.stderr_is_terminal && !self.quiet {
            // A terminal that is gone is no error.
            let _ = write!(io::stderr(), "\r\x1b[2K{}", safe(text.as_ref(), false));
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

    /// Several lines of progress that are redrawn in place. The cursor stays at their start. A line that
    /// is longer than the terminal is wide is cut, so the next drawing covers this one exactly.
    pub fn draw_block(self, lines: &[String]) {
        self.end_block(lines);
        if self.shows_progress() && !lines.is_empty() {
            let _ = write!(io::stderr(), "\x1b[{}A", lines.len());
        }
    }

    /// Draws such lines for the last time; later output appears below them.
    pub fn end_block(self, lines: &[String]) {
        if self.shows_progress() {
            let end = if lines.is_empty() { "" } else { "\r\n" };
            let lines: Vec<_> = lines.iter().map(|line| safe(line, self.colour)).collect();
            // A terminal that is gone is no error.
            let _ = write!(io::stderr(), "\x1b[?7l\r\x1b[J{}{end}\x1b[?7h", lines.join("\r\n"));
        }
    }

    /// Asks a yes/no question. Without a terminal there is no user to ask, so `--yes` is required.
    pub fn confirm(self, question: &str) -> anyhow::Result<bool> {
        if !(self.stderr_is_terminal && io::stdin().is_terminal()) {
            return Err(Failure::usage(format!("{question} Without a terminal it cannot be answered."))
                .hint("add --yes, or --dry-run to see how many it would be")
                .into());
        }
        write!(io::stderr(), "{} [y/N] ", safe(question, false))?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Text in a colour, where colours are used.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        if self.colour { format!("\x1b[{}m{text}\x1b[0m", colour as u8) } else { text.to_owned() }
    }
}

/// Colours that are readable on dark and on light.
#[derive(Debug, Clone, Copy)]
pub enum Colour {
    /// Failed.
    Red = 31,
    /// Success.
    Green = 32,
    /// A warning.
    Yellow = 33,
    /// In progress.
    Cyan = 36,
    /// Less important.
    Dim = 2,
}

impl Colour {
    /// The part of each colour sequence after the escape character.
    const SEQUENCES: [&str; 6] = ["[31m", "[32m", "[33m", "[36m", "[2m", "[0m"];
}

/// The error and its hint.
pub fn report(failure: &Failure) {
    say(&format!("error: {}", failure.message));
    if let Some(hint) = &failure.hint {
        say(&format!("hint: {hint}"));
    }
}

/// Writes a line to stderr. If stderr is gone, the line is lost.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", safe(line, false));
}

fn write_line(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// The line as a terminal may get it. Only the colours of [`Output::paint`] remain of the sequences that
/// a terminal obeys.
fn safe(line: &str, has_colours: bool) -> String {
    if !has_colours {
        return text::clean(line);
    }
    let mut whole = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\x1b') {
        whole.push_str(&text::clean(before));
        let colour = Colour::SEQUENCES.iter().find(|colour| after.starts_with(**colour));
        whole.push_str(colour.map_or("\\u{1b}", |_| "\x1b"));
        rest = after;
    }
    whole.push_str(&text::clean(rest));
    whole
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use windlass_core::text::is_unsafe;

    use super::*;

    #[test]
    fn no_unsafe_character_reaches_a_terminal() {
        for letter in ('\0'..=char::MAX).filter(|letter| is_unsafe(*letter)) {
            for has_colours in [false, true] {
                let line = safe(&format!("a{letter}[2Jb"), has_colours);
                assert!(!line.chars().any(is_unsafe), "{line:?}");
            }
        }
    }

    #[test]
    fn only_painted_colours_are_left() {
        let red = "\x1b[31mdead\x1b[0m";
        assert_eq!(safe(red, true), red);
        assert_eq!(safe(red, false), r"\u{1b}[31mdead\u{1b}[0m");
        assert_eq!(safe("\x1b[8mhidden\x1b", true), r"\u{1b}[8mhidden\u{1b}");
    }

    /// Every other file of the program that writes to a terminal, and why it may.
    const WRITERS: [(&str, &str); 4] = [
        ("logging.rs", "lines of the log are escaped by `LogFields`"),
        ("top/mod.rs", "asks whether there is a terminal; ratatui draws what `safe_lines` made"),
        ("demo/site.rs", "JSON for the process that started it"),
        ("commands/completions.rs", "a script that clap wrote"),
    ];

    #[test]
    fn every_place_that_writes_to_a_terminal_is_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let code = fs::read_to_string(&path).unwrap();
                let writes = ["println!(", "print!(", "stdout()", "stderr()", "with_writer("];
                if writes.iter().any(|word| code.contains(word)) {
                    found.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        found.retain(|file| file != "output/mod.rs");
        found.sort_unstable();
        let mut known = WRITERS.map(|(file, _)| file.to_owned());
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
