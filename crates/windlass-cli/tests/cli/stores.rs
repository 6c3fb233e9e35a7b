//! Commands on a store without a server.

use crate::support::{Running, windlass};

#[test]
fn commands_work_on_a_store_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let said = windlass(folder.path(), &["migrate"]).done();
    assert!(said.stderr.contains("schema version"), "{said:?}");
    let said = windlass(folder.path(), &["enqueue", "echo", "--payload", "1"]).done();
    assert!(said.stderr.contains("warning: no live worker"), "{said:?}");
    let id = said.stdout.trim();
    let list = windlass(folder.path(), &["tasks", "ls", "--json"]).done().json();
    assert_eq!(list["tasks"][0]["id"], id);
    windlass(folder.path(), &["queues", "ls"]).done();
    windlass(folder.path(), &["doctor", "--audit"]).done();
    // No worker runs here, so a wait would never end: it is refused.
    windlass(folder.path(), &["tasks", "wait", id]).failed(5, &["windlass up"]);
    windlass(folder.path(), &["enqueue", "echo", "--wait"]).failed(5, &["windlass up"]);
    assert_eq!(
        windlass(folder.path(), &["tasks", "ls", "--json"]).done().json()["tasks"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn migrate_plan_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let said = windlass(folder.path(), &["migrate", "--plan"]).done();
    assert!(said.stdout.contains("would be made"), "{said:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
    windlass(folder.path(), &["migrate"]).done();
    let said = windlass(folder.path(), &["migrate", "--plan"]).done();
    assert!(said.stdout.contains("nothing to do"), "{said:?}");
}

#[test]
fn a_copy_of_a_running_store_is_complete_and_restorable() {
    let up = Running::up(&[]);
    let done = up.enqueue(&["echo", "--payload", "1"]);
    up.say(&["tasks", "wait", &done]).done();
    let waiting = up.enqueue(&["echo", "--payload", "2", "--in", "1h"]);
    up.say(&["backup", "copy.db"]).done();
    up.say(&["backup", "copy.db"]).failed(4, &["copy.db exists"]);
    let copy = up.folder.path().join("copy.db");

    let elsewhere = tempfile::tempdir().unwrap();
    let copy = copy.to_str().unwrap();
    windlass(elsewhere.path(), &["restore", copy, "--hold"]).done();
    let state = |id: &str| {
        let task = windlass(elsewhere.path(), &["tasks", "show", id, "--json"]).done().json();
        task["state"].as_str().unwrap().to_owned()
    };
    assert_eq!((state(&done).as_str(), state(&waiting).as_str()), ("done", "scheduled"));
    let queues = windlass(elsewhere.path(), &["queues", "ls", "--json"]).done().json();
    assert_eq!(queues["queues"][0]["paused"], true, "{queues}");
    windlass(elsewhere.path(), &["restore", copy]).failed(4, &["windlass.db exists", "--force"]);
    windlass(elsewhere.path(), &["restore", copy, "--force"]).done();
    windlass(elsewhere.path(), &["restore", "nowhere.db", "--force"]).failed(3, &["nowhere.db"]);
    let beside = ["-wal", "-shm", "-journal"].map(|suffix| format!("{copy}{suffix}"));
    assert!(beside.iter().all(|file| !std::path::Path::new(file).exists()), "a copy is one file");
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = "a list of things to buy\n".repeat(500);
    std::fs::write(folder.path().join("notes.txt"), &text).unwrap();
    for arguments in [vec!["up", "--listen", "127.0.0.1:0"], vec!["tasks", "ls"], vec!["migrate"]] {
        let mut arguments = arguments;
        arguments.extend(["--store", "sqlite:notes.txt"]);
        windlass(folder.path(), &arguments).failed(1, &["notes.txt is not a Windlass store"]);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).unwrap(), text);
}

#[test]
fn a_folder_that_cannot_hold_a_store_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let said =
        windlass(folder.path(), &["up", "--listen", "127.0.0.1:0", "--store", "sqlite:file/windlass.db"]);
    said.failed(1, &["file/windlass.db"]);
}
