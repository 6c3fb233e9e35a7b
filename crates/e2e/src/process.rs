//! Child processes that never outlive their test.

use std::{
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a process may take to report that it is ready: generous, because test machines are busy.
pub const START_LIMIT: Duration = Duration::from_mins(2);
/// How long a command may take to end.
pub const END_LIMIT: Duration = Duration::from_mins(2);
/// How often to check for the end of a process. The standard library has no wait with a limit.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The built `windlass` program: `WINDLASS_BIN` if set, else beside the running test, else built now.
///
/// # Errors
/// If it does not exist and cannot be built.
pub fn windlass() -> Result<PathBuf> {
    match std::env::var_os("WINDLASS_BIN") {
        Some(path) => Ok(path.into()),
        None => built("windlass", "windlass-cli"),
    }
}

/// A command of the built `windlass-bench`, which starts the same `windlass` as the tests do.
///
/// # Errors
/// If one of them is not there and cannot be built.
pub fn bench() -> Result<Command> {
    let mut command = command(built("windlass-bench", "windlass-bench")?);
    command.env("WINDLASS_BIN", windlass()?);
    Ok(command)
}

/// A program of a package: beside the running test, else built now.
fn built(program: &str, package: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    // Tests are in `debug/deps`, programs in `debug`.
    let candidates = own.ancestors().skip(1).take(2).map(|folder| folder.join(&name));
    if let Some(found) = candidates.into_iter().find(|path| path.is_file()) {
        return Ok(found);
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--package", package, "--bins"])
        .current_dir(crate::workspace_root())
        .status()?;
    anyhow::ensure!(status.success(), "{package} does not build");
    let built = own.ancestors().nth(2).map(|folder| folder.join(&name));
    built.filter(|path| path.is_file()).with_context(|| format!("{program} is not beside the tests"))
}

/// An address without a server, which also means "any free port" to a server that listens on it: so neither a
/// command nor a server of a test meets other programs of this machine.
const NO_USUAL_ADDRESS: &str = "127.0.0.1:0";

/// A command with a clean environment: no setting of the machine changes a test, and it finds no server of
/// the machine. Every program of a test is started with it.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("WINDLASS_") || text.to_ascii_lowercase().ends_with("_proxy") {
            command.env_remove(&name);
        }
    }
    command.env("NO_COLOR", "1").env("WINDLASS_LISTEN", NO_USUAL_ADDRESS).stdin(Stdio::null());
    command
}

/// The output of a finished command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output: data.
    pub stdout: String,
    /// Standard error: everything else.
    pub stderr: String,
}

/// Runs a command to its end.
///
/// # Errors
/// If it cannot start or does not end within [`END_LIMIT`].
pub fn run(command: Command) -> Result<Said> {
    let mut process = Process::start(command)?;
    let status = process.wait(END_LIMIT)?;
    process.join_readers();
    Ok(Said { code: status.code(), stdout: process.text(Stream::Out), stderr: process.text(Stream::Err) })
}

/// The stream of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

#[derive(Default)]
struct Lines {
    /// Every line so far, in the order of reading.
    lines: Mutex<Vec<(Stream, String)>>,
    more: Condvar,
}

/// A running child whose output is recorded; it is killed when it goes out of scope.
pub struct Process {
    child: Child,
    lines: Arc<Lines>,
    readers: Vec<thread::JoinHandle<()>>,
    /// Whether it leads a process group that must end with it.
    leads_group: bool,
}

impl Process {
    /// Starts a command and reads its output.
    ///
    /// # Errors
    /// If it cannot start.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let lines = Arc::new(Lines::default());
        let mut readers = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            readers.push(read_lines(stdout, Stream::Out, lines.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(read_lines(stderr, Stream::Err, lines.clone()));
        }
        Ok(Self { child, lines, readers, leads_group: false })
    }

    /// Starts a command that starts others: all of them end with it.
    ///
    /// # Errors
    /// If it cannot start.
    pub fn start_group(mut command: Command) -> Result<Self> {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = Self::start(command)?;
        process.leads_group = true;
        Ok(process)
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line and returns the result of `pick`.
    ///
    /// # Errors
    /// If the process ends or `limit` passes first; the error contains all of its output.
    pub fn wait_for<T>(&mut self, limit: Duration, pick: impl Fn(&str) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + limit;
        let mut seen = 0;
        loop {
            // Check first: then the loop below certainly sees all lines written before the end.
            let has_ended = self.child.try_wait()?.is_some();
            if has_ended {
                self.join_readers();
            }
            let mut lines = self.lines.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = lines.iter().skip(seen).find_map(|(_, line)| pick(line)) {
                return Ok(found);
            }
            seen = lines.len();
            if has_ended || Instant::now() >= deadline {
                drop(lines);
                let state = if has_ended { "ended" } else { "did not say it in time" };
                bail!("the process {state}; it said:\n{}", self.transcript());
            }
            (lines, _) = self
                .lines
                .more
                .wait_timeout(lines, Duration::from_millis(50))
                .unwrap_or_else(PoisonError::into_inner);
            drop(lines);
        }
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process number")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Ends it with `kill -9` and waits until it is gone.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether it has ended by now.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If it does not end in time; the error contains all of its output.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("the process has not ended after {limit:?}; it said:\n{}", self.transcript());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Everything it wrote to one stream so far.
    pub fn text(&self, stream: Stream) -> String {
        let lines = self.lines.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let of_stream: Vec<&str> =
            lines.iter().filter(|(from, _)| *from == stream).map(|(_, line)| line.as_str()).collect();
        of_stream.join("\n")
    }

    /// Everything it wrote so far, both streams.
    pub fn transcript(&self) -> String {
        let lines = self.lines.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Waits until the last output has been read; call only after the end.
    pub fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            // A reader ends with its pipe; its result does not matter.
            let _ = reader.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()).filter(|_| self.leads_group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(pipe: impl Read + Send + 'static, stream: Stream, into: Arc<Lines>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            into.lines.lock().unwrap_or_else(PoisonError::into_inner).push((stream, text));
            into.more.notify_all();
        }
    })
}
