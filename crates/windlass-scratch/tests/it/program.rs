//! The program that runs a command with a server beside it.

use std::{
    io::{BufRead, BufReader, Lines},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::processes::{wait_until_gone, with_argument};

/// Prints the server's port, then waits for a signal and ends with code 5.
const COMMAND: &str = "psql -X -A -t \"$WINDLASS_TEST_POSTGRES\" -c 'SELECT 1'; \
                       trap 'exit 5' TERM; \
                       psql -X -A -t \"$WINDLASS_TEST_POSTGRES\" -c 'SHOW port'; \
                       while :; do sleep 0.05; done";

fn program(command: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_windlass-scratch"));
    program.args(["postgres", "--fsync", "off", "--"]).args(command).stdout(Stdio::piped());
    program
}

struct Running {
    child: Child,
    folder: PathBuf,
    /// Kept open: otherwise the command would end with its first line of output.
    lines: Lines<BufReader<ChildStdout>>,
}

fn start() -> Running {
    let mut child = program(&["sh", "-c", COMMAND]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    let port = lines.next().unwrap().unwrap();
    let folder = server_folder(&port);
    assert_eq!(with_argument(folder.to_str().unwrap()).len(), 2, "the server and its shell");
    Running { child, folder, lines }
}

/// The folder of the server that has a Unix socket of this port.
fn server_folder(port: &str) -> PathBuf {
    let socket = format!(".s.PGSQL.{port}");
    // The usual folder, and the one that is used if the server's user has no access to the usual one.
    let parents = [std::env::temp_dir(), PathBuf::from("/tmp")];
    let entries = parents.iter().flat_map(|parent| std::fs::read_dir(parent).unwrap());
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut ours = folders.filter(|path| path.to_string_lossy().contains("windlass-scratch-"));
    ours.find(|path| path.join(&socket).exists()).unwrap()
}

fn send(running: &Running, signal: Signal) {
    let pid = Pid::from_raw(running.child.id().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn exit_code_is_the_commands_own_and_nothing_is_left() {
    let output = program(&["sh", "-c", "echo $WINDLASS_TEST_POSTGRES; exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let url = String::from_utf8(output.stdout).unwrap();
    assert!(url.starts_with("postgres://windlass@127.0.0.1:"), "{url}");
    assert!(windlass_scratch::psql(url.trim(), "SELECT 1").is_err(), "the server has gone");
}

#[test]
fn signal_is_passed_on_and_the_command_decides() {
    let mut running = start();
    send(&running, Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(5));
    assert!(!running.folder.exists());
    assert_eq!(with_argument(running.folder.to_str().unwrap()), Vec::<u32>::new());
}

#[test]
fn killed_parent_leaves_neither_server_nor_folder_nor_command() {
    let mut running = start();
    send(&running, Signal::KILL);
    running.child.wait().unwrap();
    wait_until_gone(&running.folder);
    // The command was asked to end too: no process has its output open any more.
    assert!(running.lines.next().is_none());
}

#[test]
fn killed_shell_takes_its_server_with_it() {
    let mut running = start();
    let name = running.folder.to_str().unwrap().to_owned();
    let shell = with_argument("windlass-scratch-keeper");
    let shell = shell.into_iter().find(|pid| with_argument(&name).contains(pid)).unwrap();
    kill_process(Pid::from_raw(shell.cast_signed()).unwrap(), Signal::KILL).unwrap();
    while !with_argument(&name).is_empty() {
        std::thread::yield_now();
    }
    send(&running, Signal::TERM);
    assert_eq!(running.child.wait().unwrap().code(), Some(5));
    assert!(!running.folder.exists());
}

#[test]
fn wrong_usage_is_code_2() {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass-scratch")).arg("mysql").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
