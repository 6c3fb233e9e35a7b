//! Real faults against the built program: each test starts its own processes on its own files.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod admission;
mod bad_input;
mod crash;
mod disk;
mod drain;
mod gates;
mod kill;
mod limits;
mod quarantine;
mod remote;
mod second;
mod soak;
mod stores;
mod terminal;

use std::{path::Path, process::Command};

use e2e::process::{self, Said};

/// `windlass` with arguments, in its own folder.
fn windlass<const N: usize>(folder: &Path, arguments: [&str; N]) -> Command {
    let mut command = process::command(process::windlass().expect("the program is built"));
    command.args(arguments).current_dir(folder);
    command
}

/// Runs `windlass` to its end.
fn say<const N: usize>(folder: &Path, arguments: [&str; N]) -> Said {
    process::run(windlass(folder, arguments)).expect("the command ends")
}

/// Whether to run with the numbers of `scripts/test --long`.
fn is_long() -> bool {
    std::env::var_os("WINDLASS_LONG").is_some()
}

/// An error as every command reports it: the exit code, one line that contains all of `parts`, perhaps a
/// hint, and nothing else: no backtrace, no second error, no data.
#[track_caller]
fn assert_refused(said: &Said, code: i32, parts: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(said.stdout, "", "{said:?}");
    let errors: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one line says what is wrong: {said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "{part:?} is missing: {said:?}");
    }
    assert!(!said.stderr.contains("panicked"), "{said:?}");
}
