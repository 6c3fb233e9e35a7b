//! A real terminal that a test can read and type into: tmux, on a server of its own.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// How long a text may take to appear: generous, it only bounds a failure.
const LIMIT: Duration = Duration::from_mins(2);
/// How often to check for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A terminal with a command in it, closed when it goes out of scope.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts a shell line in a terminal of this size. The terminal stays after the line has ended.
    ///
    /// # Errors
    /// If tmux is missing.
    pub fn start(width: u16, height: u16, line: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("windlass-{}-{number}", std::process::id()) };
        let (width, height) = (width.to_string(), height.to_string());
        // Without the developer's configuration, and with a screen that stays when its command has ended.
        let arguments = ["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, line];
        let keep =
            [";", "set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "status", "off"];
        terminal.tmux(arguments.into_iter().chain(keep))?;
        Ok(terminal)
    }

    fn tmux<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let mut command = crate::process::command("tmux");
        command.args(["-L", &self.socket]).args(arguments);
        command.env_remove("TMUX").env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
        let said = command.output().context("tmux is needed: scripts/install installs it")?;
        ensure!(said.status.success(), "tmux: {}", String::from_utf8_lossy(&said.stderr));
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    /// The text on the screen.
    ///
    /// # Errors
    /// If the terminal has ended.
    pub fn screen(&self) -> Result<String> {
        self.tmux(["capture-pane", "-p"])
    }

    /// Types a key, such as `p`, `Tab` or `C-c`.
    ///
    /// # Errors
    /// If the terminal has ended.
    pub fn press(&self, key: &str) -> Result<()> {
        self.tmux(["send-keys", key]).map(drop)
    }

    /// Waits until the screen contains all of these; returns it.
    ///
    /// # Errors
    /// If it does not in time.
    pub fn wait_for(&self, parts: &[&str]) -> Result<String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let screen = self.screen()?;
            if parts.iter().all(|part| screen.contains(part)) {
                return Ok(screen);
            }
            if Instant::now() > deadline {
                bail!("{parts:?} did not appear:\n{screen}");
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The process in the terminal.
    ///
    /// # Errors
    /// If the terminal has ended.
    pub fn pid(&self) -> Result<i32> {
        Ok(self.tmux(["display-message", "-p", "#{pane_pid}"])?.trim().parse()?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // No other tmux server has this name.
        let _ = self.tmux(["kill-server"]);
    }
}
