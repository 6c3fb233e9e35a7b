//! The shell that keeps a server running for as long as this process runs.
//!
//! A parent that is killed cannot clean up. The kernel's signal on a parent's death follows the thread that
//! started the child; in a test that thread often ends first. So a separate shell stands between: it starts
//! the server, ends it when its pipe closes for any reason, and removes the folder. If the shell itself is
//! killed, the kernel ends the server, because the shell has only one thread.

pub(crate) mod owner;
pub(crate) mod port;

use std::{
    ffi::OsString,
    fs,
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process},
};
use tempfile::TempDir;

use self::owner::Owner;
use crate::{Error, programs};

const SCRIPT: &str = include_str!("keeper.sh");
/// How long a server may take to end cleanly before it is killed. A fast stop of PostgreSQL writes a
/// checkpoint.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long a killed process may take to end; it only has to be scheduled.
const KILLED_LIMIT: Duration = Duration::from_secs(30);

/// One server, running or not, with its folder.
#[derive(Debug)]
pub struct Keeper {
    shell: Mutex<Shell>,
    /// The shell removes it; dropping this afterwards covers a shell that was killed.
    folder: TempDir,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    /// `None` while the value is dropped.
    words: Option<ChildStdin>,
    answers: Option<ChildStdout>,
    server: Option<u32>,
}

impl Keeper {
    /// Starts the shell, not yet the server. The shell ends the server with `last_signal`.
    pub fn new(owner: Owner, folder: TempDir, last_signal: &str, server: &[OsString]) -> Result<Self, Error> {
        let mut command = owner.command("/bin/sh");
        command.args(["-c", SCRIPT, "windlass-scratch-keeper", last_signal]).arg(folder.path());
        command.args(mortal(last_signal)).args(server);
        // Ctrl-C in the terminal reaches the whole process group of the caller; the server must outlive it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (words, answers) = (child.stdin.take(), child.stdout.take());
        let shell = Mutex::new(Shell { child, words, answers, server: None });
        Ok(Self { shell, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the server's command; the caller checks whether it stays up.
    pub fn start(&self) -> Result<u32, Error> {
        let mut shell = self.lock();
        shell.say("start")?;
        let answer = shell.answer(STOP_LIMIT)?.ok_or(Error::KeeperGone)?;
        let server = answer.parse().map_err(|_| Error::KeeperGone)?;
        shell.server = Some(server);
        Ok(server)
    }

    /// Sends a signal to the server and waits for its end. Does nothing if it does not run.
    pub fn stop(&self, signal: &str) -> Result<(), Error> {
        let mut shell = self.lock();
        shell.say(&format!("stop {signal}"))?;
        if shell.answer(STOP_LIMIT)?.is_none() {
            shell.kill_server();
            shell.answer(KILLED_LIMIT)?.ok_or(Error::KeeperGone)?;
        }
        shell.server = None;
        Ok(())
    }

    /// The process of the server, if it was started and not stopped.
    pub fn pid(&self) -> Option<u32> {
        self.lock().server
    }

    /// Whether the server's process runs and has not ended.
    pub fn is_running(&self) -> bool {
        self.pid().is_some_and(|pid| !has_ended(pid))
    }

    fn lock(&self) -> MutexGuard<'_, Shell> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let mut shell = self.lock();
        shell.words = None;
        // The shell closes its output when it ends. An error cannot be reported from here.
        if let Ok(None) = shell.answer(STOP_LIMIT) {
            shell.kill_server();
            let _ = shell.answer(KILLED_LIMIT);
            let _ = shell.child.kill();
        }
        let _ = shell.child.wait();
    }
}

impl Shell {
    fn say(&mut self, line: &str) -> Result<(), Error> {
        let words = self.words.as_mut().ok_or(Error::KeeperGone)?;
        words.write_all(format!("{line}\n").as_bytes()).map_err(|_| Error::KeeperGone)
    }

    /// The next line; `None` if it does not come in time.
    fn answer(&mut self, limit: Duration) -> Result<Option<String>, Error> {
        let answers = self.answers.as_mut().ok_or(Error::KeeperGone)?;
        let deadline = Instant::now() + limit;
        let mut line = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let timeout = Timespec::try_from(left).ok();
            let is_ready = match poll(&mut [PollFd::new(answers, PollFlags::IN)], timeout.as_ref()) {
                Ok(ready) => ready > 0,
                Err(rustix::io::Errno::INTR) => false,
                Err(error) => return Err(Error::Folder(error.into())),
            };
            if !is_ready {
                continue;
            }
            let mut bytes = [0; 64];
            match answers.read(&mut bytes) {
                Ok(0) | Err(_) => return Err(Error::KeeperGone),
                Ok(count) => line.extend(bytes.iter().take(count)),
            }
            if line.last() == Some(&b'\n') {
                return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
            }
        }
    }

    fn kill_server(&self) {
        let pid = self.server.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether a process has ended: it does not exist, or waits to be collected by the shell.
fn has_ended(pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name is in brackets and may contain any character; the state follows.
    text.rsplit_once(") ").is_none_or(|(_, after)| after.starts_with('Z'))
}

/// The words before a command that make the kernel send it a signal when the thread that started it ends;
/// empty if `setpriv` cannot do that.
pub fn mortal(signal: &str) -> Vec<OsString> {
    let Some(setpriv) = programs::in_search_path("setpriv") else { return Vec::new() };
    let help = Command::new(&setpriv).arg("--help").output();
    if help.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--pdeathsig")) {
        vec![setpriv.into(), "--pdeathsig".into(), signal.into(), "--".into()]
    } else {
        Vec::new()
    }
}
