//! Runs the program in a folder of its own.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

/// A port without a listener: it is privileged, and assigned to no service that runs here.
pub const NO_SERVER: &str = "127.0.0.1:1";

/// The output and exit code of a finished command.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The one JSON value on stdout.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that the command succeeded.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Asserts that it failed with this code and one error line with these parts, and printed nothing on
    /// stdout.
    #[track_caller]
    pub fn failed(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let errors = self.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing: {self:?}");
        }
        self
    }
}

/// A command of the program in a folder, without any setting of this machine.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WINDLASS_") {
            command.env_remove(name);
        }
    }
    for name in ["MAX_CONCURRENT_TASKS", "WORKER_CONCURRENCY", "CLAIM_BATCH_SIZE", "POLL_INTERVAL_MS"] {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").env("WINDLASS_LISTEN", NO_SERVER);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub fn windlass(folder: &Path, arguments: &[&str]) -> Said {
    finish(command(folder, arguments))
}

/// Runs the program to its end with something on stdin.
pub fn windlass_with(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Said {
    let mut child = command(folder, arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    said(child.wait_with_output().unwrap())
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> Said {
    said(command.output().unwrap())
}

fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running `windlass up` (or `worker`), killed at the end of the test.
pub struct Running {
    child: Child,
    pub folder: tempfile::TempDir,
    pub address: String,
    /// The first screen, up to and including the line with the address.
    pub first_line: String,
    rest: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    said_on_stderr: std::sync::mpsc::Receiver<String>,
}

impl Running {
    /// Starts `windlass up` on a free port in a new folder.
    pub fn up(arguments: &[&str]) -> Self {
        Self::up_in(tempfile::tempdir().unwrap(), arguments)
    }

    /// The same in an existing folder.
    pub fn up_in(folder: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut all = vec!["up", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        Self::start(folder, &all)
    }

    /// Starts a long-running command and waits for its first line.
    pub fn start(folder: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut child = command(folder.path(), arguments).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (say, said_on_stderr) = std::sync::mpsc::channel();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            for line in stderr.lines().map_while(Result::ok) {
                text.push_str(&line);
                text.push('\n');
                // The test may have dropped the receiver; most tests read no single lines.
                let _ = say.send(line);
            }
            text
        });
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        let rest = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        let address = first_line.find("http").map(|at| first_line[at..].trim().to_owned());
        let address = address.unwrap_or_default();
        let (rest, stderr) = (Some(rest), Some(stderr));
        let running = Self { child, folder, address, first_line, rest, stderr, said_on_stderr };
        assert!(!running.first_line.is_empty(), "it ended at once: {:?}", running.end());
        running
    }

    /// Runs a command in the folder of the server; it finds the server through the store.
    pub fn say(&self, arguments: &[&str]) -> Said {
        windlass(self.folder.path(), arguments)
    }

    /// Enqueues a task and returns its id.
    #[track_caller]
    pub fn enqueue(&self, arguments: &[&str]) -> String {
        let mut all = vec!["enqueue"];
        all.extend(arguments);
        self.say(&all).done().stdout.trim().to_owned()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for a line on stderr that contains `word`.
    pub fn wait_for(&self, word: &str) -> String {
        loop {
            let line = self.said_on_stderr.recv().unwrap_or_else(|_| panic!("it ended without {word:?}"));
            if line.contains(word) {
                return line;
            }
        }
    }

    /// The process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end and returns the whole output.
    pub fn end(mut self) -> Said {
        let code = self.child.wait().unwrap().code();
        let rest = self.rest.take().unwrap().join().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Said { code, stdout: format!("{}{rest}", self.first_line), stderr }
    }

    /// Kills the process, as a crash would, and returns its folder.
    pub fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
