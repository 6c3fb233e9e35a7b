//! The demo's end of the site process: a child that answers questions.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;

use super::site::{Addresses, LOOK, MARK, Report};

/// The running site process; dropping this ends it.
pub(super) struct Witness {
    child: Child,
    dialogue: Arc<Mutex<Dialogue>>,
    /// `address:port` of each host.
    pub(super) hosts: Vec<String>,
}

struct Dialogue {
    words: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Dialogue {
    fn listen(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        anyhow::ensure!(self.answers.read_line(&mut line)? > 0, "the site of the demo ended early");
        Ok(line)
    }

    fn ask(&mut self, word: &str) -> anyhow::Result<Report> {
        writeln!(self.words, "{word}").context("the site of the demo ended early")?;
        Ok(serde_json::from_str(&self.listen()?)?)
    }
}

impl Witness {
    /// Starts the site and waits until it listens.
    pub(super) fn start(hosts: u32) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["demo-site", "--hosts", &hosts.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Keep Ctrl-C away from the child: the demo asks it once more after Ctrl-C.
            .process_group(0)
            .spawn()
            .context("cannot start the site of the demo")?;
        let (words, answers) = (child.stdin.take(), child.stdout.take());
        let (words, answers) = words.zip(answers).context("the site of the demo has no pipes")?;
        let mut dialogue = Dialogue { words, answers: BufReader::new(answers) };
        let Addresses { hosts } = serde_json::from_str(&dialogue.listen()?)?;
        Ok(Self { child, dialogue: Arc::new(Mutex::new(dialogue)), hosts })
    }

    /// The counts so far.
    pub(super) async fn look(&self) -> anyhow::Result<Report> {
        self.ask(LOOK).await
    }

    /// The same; peaks and idle times are then counted again from here.
    pub(super) async fn mark(&self) -> anyhow::Result<Report> {
        self.ask(MARK).await
    }

    async fn ask(&self, word: &'static str) -> anyhow::Result<Report> {
        let dialogue = self.dialogue.clone();
        tokio::task::spawn_blocking(move || dialogue.lock().unwrap_or_else(PoisonError::into_inner).ask(word))
            .await?
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
