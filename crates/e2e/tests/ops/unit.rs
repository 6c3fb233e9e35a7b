//! The files under `ops/` fit the program.

use std::{path::Path, process::Command};

use e2e::process;

fn unit() -> String {
    e2e::read("ops/systemd/windlass.service")
}

/// The value of a key that occurs once.
fn value(text: &str, key: &str) -> String {
    let found: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(&format!("{key}="))).collect();
    assert_eq!(found.len(), 1, "{key}: {found:?}");
    found[0].to_owned()
}

/// The arguments after the program's name in the unit and in the container.
fn arguments() -> [Vec<String>; 2] {
    let start = value(&unit(), "ExecStart");
    let container = e2e::read("ops/container/Containerfile");
    let command = container.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    [start.split(' ').skip(1).map(str::to_owned).collect(), serde_json::from_str(command).unwrap()]
}

#[test]
fn the_program_accepts_the_arguments_of_unit_and_container() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in arguments() {
        let mut command = process::command(process::windlass().unwrap());
        command.args(&arguments).args(["--store", "sqlite::nowhere/none.db", "--listen", "not an address"]);
        command.current_dir(folder.path());
        let said = process::run(command).unwrap();
        // Only the last argument is wrong.
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("listen must be an address"), "{arguments:?}: {said:?}");
    }
}

#[test]
fn the_unit_waits_longer_for_a_stop_than_the_program_drains() {
    let drain_ms: u64 = e2e::read("docs/configuration.md")
        .lines()
        .find(|line| line.contains("`drain_timeout_ms`"))
        .and_then(|line| {
            line.split('|').map(|cell| cell.trim().trim_matches('`')).find_map(|cell| cell.parse().ok())
        })
        .unwrap();
    let stop_s: u64 = value(&unit(), "TimeoutStopSec").parse().unwrap();
    // After the drain: handlers are dropped, settlements written, the store closed.
    assert!(stop_s * 1_000 > drain_ms + 10_000, "{stop_s} s for a drain of {drain_ms} ms");
    assert_eq!(value(&unit(), "Type"), "notify");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let program = process::windlass().unwrap();
    let path = folder.path().join("windlass.service");
    std::fs::write(&path, unit().replace("/usr/local/bin/windlass", program.to_str().unwrap())).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output() {
        Ok(said) => {
            let text = String::from_utf8_lossy(&said.stderr).into_owned();
            // It also checks every unit that this one names; only messages about ours count.
            let ours: Vec<_> = text.lines().filter(|line| line.contains("windlass")).collect();
            assert_eq!(ours, Vec::<&str>::new(), "{text}");
        }
        Err(error) => {
            eprintln!("not checked: systemd-analyze is not on this machine ({error}); it comes with systemd");
        }
    }
    assert!(Path::new(&program).is_file());
}
