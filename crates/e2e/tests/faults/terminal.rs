//! Behaviour that needs a terminal: a question before many tasks are changed.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{say, windlass};

/// Runs a command on its own terminal and types an answer to its question. Returns the text on the terminal,
/// and the exit code.
fn on_terminal(mut command: Command, answer: &str) -> (String, Option<i32>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || Stdio::from(OpenOptions::new().read(true).write(true).open(&name).unwrap());
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    // The terminal ends when no process has it open, so this process must close it.
    drop(command);
    let (mut master, mut shown, mut answered) = (File::from(master), String::new(), false);
    let mut bytes = [0; 1024];
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        if shown.contains("[y/N]") && !answered {
            master.write_all(answer.as_bytes()).unwrap();
            answered = true;
        }
    }
    assert!(answered, "nothing was asked: {shown}");
    (shown, child.wait().unwrap().code())
}

#[test]
fn many_tasks_are_cancelled_only_after_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(say(folder.path(), ["migrate", "--store", "sqlite:a.db"]).code, Some(0));
    let enqueue = ["enqueue", "echo", "--in", "1h", "--count", "3", "--store", "sqlite:a.db"];
    assert_eq!(say(folder.path(), enqueue).code, Some(0));
    let cancel = || windlass(folder.path(), ["tasks", "cancel", "--kind", "echo", "--store", "sqlite:a.db"]);
    let states = || say(folder.path(), ["tasks", "ls", "--store", "sqlite:a.db", "--json"]).stdout;

    let (shown, _) = on_terminal(cancel(), "n\n");
    assert!(shown.contains('3'), "the question says how many: {shown}");
    assert_eq!(states().matches("\"scheduled\"").count(), 3, "a no changes nothing");
    let (shown, code) = on_terminal(cancel(), "y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(states().matches("\"cancelled\"").count(), 3, "{}", states());
}
