//! Which server or store a command uses, and how the user learns it.

use std::{collections::BTreeSet, path::Path};

use crate::support::{NO_SERVER, Running, Said, command, finish, windlass};

/// Runs a command in a folder, on a machine where this server has the usual address.
fn beside(up: &Running, folder: &Path, arguments: &[&str]) -> Said {
    let mut command = command(folder, arguments);
    command.env("WINDLASS_LISTEN", up.address.strip_prefix("http://").unwrap());
    finish(command)
}

fn store_in(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("windlass.db").display())
}

fn is_paused(folder: &Path, queue: &str) -> bool {
    let queues = windlass(folder, &["queues", "ls", "--json"]).done().json();
    let queues = queues["queues"].as_array().unwrap();
    queues.iter().any(|one| one["queue"] == queue && one["paused"] == true)
}

#[test]
fn a_store_in_this_folder_wins_over_the_usual_server() {
    let (other, own) = (Running::up(&[]), tempfile::tempdir().unwrap());
    windlass(own.path(), &["migrate"]).done();
    let said = beside(&other, own.path(), &["queues", "pause", "mail", "--create"]).done();
    assert!(said.stderr.contains(&format!("target: {}\n", store_in(own.path()))), "{said:?}");
    assert!(is_paused(own.path(), "mail"));
    assert!(!is_paused(other.folder.path(), "mail"), "another project's queue was paused");

    beside(&other, own.path(), &["enqueue", "echo"]).done();
    let tasks = other.say(&["tasks", "ls", "--json"]).done().json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 0, "another project got the task");
    let said = beside(&other, own.path(), &["doctor"]).done();
    assert!(said.stdout.contains(&store_in(own.path())), "{said:?}");
    let said = beside(&other, own.path(), &["health"]);
    said.failed(5, &[&format!("no server runs on {}", store_in(own.path()))]);
}

#[test]
fn without_a_store_here_the_usual_server_is_named() {
    let (up, elsewhere) = (Running::up(&[]), tempfile::tempdir().unwrap());
    let target = format!("target: {}, store {}\n", up.address, store_in(up.folder.path()));
    let said = beside(&up, elsewhere.path(), &["queues", "pause", "mail", "--create"]).done();
    assert!(said.stderr.contains(&target), "{said:?}");
    assert!(is_paused(up.folder.path(), "mail"));
    // A command that only reads names the server too: its user could take the data for that of this
    // folder.
    let said = beside(&up, elsewhere.path(), &["queues", "ls"]).done();
    assert!(said.stderr.contains(&target), "{said:?}");
    let said = up.say(&["queues", "ls"]).done();
    assert_eq!(said.stderr, "", "in its own folder a look has nothing to add");
}

#[test]
fn what_was_named_wins_and_the_nearer_name_over_the_farther() {
    let (up, own) = (Running::up(&[]), tempfile::tempdir().unwrap());
    windlass(own.path(), &["migrate"]).done();
    let there = format!("target: {}, store {}\n", up.address, store_in(up.folder.path()));
    let here = format!("target: {}\n", store_in(own.path()));
    let said = windlass(own.path(), &["queues", "pause", "a", "--create", "--server", &up.address]).done();
    assert!(said.stderr.contains(&there), "{said:?}");
    // A flag wins over a variable, whether it names a server or a store.
    let mut by_flag =
        command(own.path(), &["queues", "pause", "b", "--create", "--store", "sqlite:windlass.db"]);
    by_flag.env("WINDLASS_SERVER", &up.address);
    assert!(finish(by_flag).done().stderr.contains(&here));
    let mut by_flag = command(own.path(), &["queues", "pause", "c", "--create", "--server", &up.address]);
    by_flag.env("WINDLASS_STORE", "sqlite:windlass.db");
    assert!(finish(by_flag).done().stderr.contains(&there));
    let both = ["queues", "pause", "e", "--create", "--server", &up.address, "--store", "sqlite:windlass.db"];
    assert!(windlass(own.path(), &both).done().stderr.contains(&there));
    // A command uses a named store through the server that runs on it.
    let store = store_in(up.folder.path());
    let said = windlass(own.path(), &["queues", "pause", "d", "--create", "--store", &store]).done();
    assert!(said.stderr.contains(&there), "{said:?}");
}

#[test]
fn a_stale_lock_file_does_not_lead_to_another_server() {
    let folder = Running::up(&[]).kill();
    // Another server has the same port by now, and in a container also the same process number.
    let other = Running::up(&[]);
    let owner = format!(r#"{{"pid":{},"address":"{}"}}"#, other.pid(), other.address);
    std::fs::write(folder.path().join("windlass.db.lock"), owner).unwrap();
    let said = windlass(folder.path(), &["queues", "pause", "mail", "--create"]).done();
    assert!(said.stderr.contains(&format!("target: {}\n", store_in(folder.path()))), "{said:?}");
    assert!(!is_paused(other.folder.path(), "mail"));
}

#[test]
fn a_wish_for_quiet_or_json_keeps_the_data_clean() {
    let up = Running::up(&[]);
    let said = up.say(&["enqueue", "echo", "--quiet"]).done();
    assert_eq!(said.stderr, "", "{said:?}");
    let said = up.say(&["enqueue", "echo", "--json"]).done();
    assert!(said.json()["id"].is_string() && said.stderr.starts_with("target: "), "{said:?}");
}

/// Commands that change something, with their arguments, in an order in which each can run. No server
/// runs on the store.
const CHANGES: [&[&str]; 29] = [
    &["enqueue", "echo", "--job", "j", "--workflow", "w"],
    &["tasks", "cancel", "--state", "scheduled", "--yes"],
    &["tasks", "retry", "--state", "dead", "--yes"],
    &["tasks", "rm", "--state", "dead", "--yes"],
    &["queues", "purge", "default", "--yes"],
    &["queues", "pause", "default"],
    &["queues", "resume", "default"],
    &["jobs", "set", "j", "--concurrency", "3"],
    &["jobs", "pause", "j"],
    &["jobs", "resume", "j"],
    &["jobs", "cancel", "j"],
    &["jobs", "rm", "j"],
    &["workflows", "retry", "w"],
    &["workflows", "skip", "w"],
    &["workflows", "cancel", "w"],
    &["schedules", "set", "s", "--cron", "0 3 * * *", "echo"],
    &["schedules", "pause", "s"],
    &["schedules", "resume", "s"],
    &["schedules", "run", "s"],
    &["schedules", "rm", "s"],
    &["workers", "set", "w1", "--slots", "3"],
    &["token", "create", "--scope", "read", "--name", "t"],
    &["token", "revoke", "t"],
    &["sessions", "end", "x"],
    &["runs", "stop", "1"],
    // These work on files, and print which.
    &["migrate"],
    &["backup", "copy.db"],
    &["restore", "copy.db", "--force"],
    &["store", "copy"],
];

/// Commands that only read, and services that print their store on the first screen.
const OTHERS: [&str; 29] = [
    "up",
    "worker",
    "consume",
    "top",
    "demo",
    "doctor",
    "health",
    "completions",
    "config init",
    "config check",
    "tasks export",
    "tasks ls",
    "tasks show",
    "tasks why",
    "tasks wait",
    "queues ls",
    "queues why",
    "jobs ls",
    "jobs show",
    "workflows ls",
    "workflows show",
    "schedules ls",
    "schedules show",
    "workers ls",
    "token ls",
    "sessions ls",
    "runs ls",
    "runs show",
    "activity",
];

/// The commands that a help text lists.
fn listed(folder: &Path, of: &[&str]) -> Vec<String> {
    let help = windlass(folder, &[of, &["--help"]].concat()).done().stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    // The description of a command may continue on the next line, indented further.
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn every_command_that_changes_something_names_its_target() {
    let folder = tempfile::tempdir().unwrap();
    windlass(folder.path(), &["migrate"]).done();
    for arguments in CHANGES.iter().take_while(|arguments| **arguments != ["migrate"]) {
        let said = windlass(folder.path(), arguments);
        assert!(said.code.is_some_and(|code| code != 2), "wrong usage: {said:?}");
        let target = format!("target: {}\n", store_in(folder.path()));
        assert!(said.stderr.starts_with(&target), "{arguments:?}: {said:?}");
    }
    // A new command must be added to one of the two lists.
    let mut leaves = BTreeSet::new();
    for command in listed(folder.path(), &[]) {
        let below = listed(folder.path(), &[&command]);
        leaves.extend(below.iter().map(|name| format!("{command} {name}")));
        if below.is_empty() {
            leaves.insert(command);
        }
    }
    assert!(leaves.len() > 40, "{leaves:?}");
    let changes = CHANGES.map(|words| words[..words.len().min(2)].join(" "));
    let unknown: Vec<&String> = leaves
        .iter()
        .filter(|leaf| !changes.iter().any(|known| known == *leaf || known.split(' ').next() == Some(leaf)))
        .filter(|leaf| !OTHERS.contains(&leaf.as_str()))
        .collect();
    assert!(unknown.is_empty(), "does it change something? {unknown:?}");
}

#[test]
fn bench_command_says_which_program_has_the_benches() {
    let folder = tempfile::tempdir().unwrap();
    let typed: [&[&str]; 4] =
        [&[], &["drain", "--store", "postgres", "--slots", "3"], &["--quick"], &["--help"]];
    for rest in typed {
        let said = windlass(folder.path(), &[&["bench"], rest].concat());
        said.failed(
            2,
            &[
                "not in this program",
                "`windlass-bench`",
                "cargo build --release -p windlass-cli -p windlass-bench",
            ],
        );
    }
}

#[test]
fn a_missing_server_is_reported_with_its_last_address() {
    let folder = Running::up(&[]).kill();
    let said = windlass(folder.path(), &["health"]);
    said.failed(5, &["no server runs on", "the last one was at http://127.0.0.1:"]);
    let empty = tempfile::tempdir().unwrap();
    windlass(empty.path(), &["health"]).failed(5, &[&format!("no server at http://{NO_SERVER}")]);
}
