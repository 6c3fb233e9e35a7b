//! The Python client against the built program: its own tests, run with the pinned versions of its tools.
//!
//! Each test here is one file of `clients/python/tests`; they start and end their servers themselves.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use e2e::{
    postgres::Place,
    process::{self, Process},
    workspace_root,
};

/// Bounds a failure: the longest of these files takes less than a minute on an idle machine.
const LIMIT: Duration = Duration::from_mins(4);

/// The interpreter with the tools; created on the first call.
fn python() -> PathBuf {
    let said = Command::new(workspace_root().join("scripts/python-env")).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    PathBuf::from(String::from_utf8(said.stdout).unwrap().trim())
}

fn folder() -> PathBuf {
    workspace_root().join("clients/python")
}

/// Runs one file of tests.
fn pytest(file: &str, settings: &[(&str, &str)]) {
    let mut command = process::command(python());
    command.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(Path::new("tests").join(file));
    command.current_dir(folder()).env("WINDLASS_BIN", process::windlass().unwrap());
    command.envs(settings.iter().copied());
    // Servers and workers that the tests have started end with this process.
    let mut tests = Process::start_group(command).unwrap();
    let status = tests.wait(LIMIT).unwrap();
    tests.join_readers();
    assert!(status.success(), "{}", tests.transcript());
}

macro_rules! files {
    ($($name:ident: $file:literal,)*) => {
        const FILES: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                pytest($file, &[]);
            }
        )*
    };
}

files! {
    a_server_with_access_control_is_used_with_tokens_and_over_tls: "test_access.py",
    clients_ask_and_are_answered: "test_client.py",
    nothing_is_lost_with_servers_and_workers_that_die: "test_faults.py",
    a_lost_answer_is_no_second_task: "test_lost_answers.py",
    the_package_is_typed_and_its_messages_are_those_of_the_proto: "test_package.py",
    the_examples_of_the_documents_run: "test_readme.py",
    addresses_and_tokens_are_read_and_checked: "test_settings.py",
    attempts_end_as_in_every_other_worker: "test_settlement.py",
    stock_tools_speak_the_same_proto: "test_stock_tools.py",
    tokens_and_certificates_are_shown_and_checked: "test_tls.py",
    a_worker_survives_faults_of_its_stream: "test_stream.py",
    a_worker_runs_what_a_server_sends: "test_worker.py",
}

/// Needs a store that two servers can share.
const ON_POSTGRES: &str = "test_postgres.py";

#[test]
fn a_worker_continues_at_another_server_of_the_same_store() {
    let place = Place::shared().unwrap();
    pytest(ON_POSTGRES, &[("WINDLASS_TEST_STORE", place.url()), ("WINDLASS_TEST_SCHEMA", place.schema())]);
}

#[test]
fn no_file_of_tests_is_left_out() {
    let run: BTreeSet<String> = FILES.iter().chain([&ON_POSTGRES]).map(|name| (*name).to_owned()).collect();
    let entries = std::fs::read_dir(folder().join("tests")).unwrap();
    let there = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = there.filter(|name| name.starts_with("test_")).collect();
    assert_eq!(run, there);
}
