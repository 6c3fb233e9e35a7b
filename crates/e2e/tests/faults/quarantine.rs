//! POISON-CONTAINED: a task that takes its process down, again and again; on a file, and over gRPC to a
//! server on a file.
//! `WINDLASS_LONG=1` makes it 1,000 tasks of a second on 1,000 slots, and prints what it cost.

use std::path::Path;

use e2e::{
    containment::{Ground, Load},
    up::{Up, up_command},
};

fn aborter() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_aborter"))
}

/// A file. Its next process takes what the last one held as it opens, so no lease has to run out.
fn file(folder: &Path) -> Ground {
    Ground::new(aborter(), &format!("sqlite:{}", folder.join("windlass.db").display()))
}

/// A server on a file, whose own worker serves another queue.
fn server(folder: &Path) -> (Up, Ground) {
    let mut command = up_command(&folder.join("windlass.db"), ["--queues", "others"]).unwrap();
    command.env("WINDLASS_SWEEP_MS", "400");
    let up = Up::start(command).unwrap();
    let ground = Ground::new(aborter(), &up.address).leased(crate::is_long());
    (up, ground)
}

fn usual() -> Load {
    Load::of(200, crate::is_long())
}

/// Each restart waits for a lease here.
fn usual_of_server() -> Load {
    Load::of(20, crate::is_long())
}

fn contain(load: &Load) {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path()).contain("file", load).unwrap();
}

fn contain_on_server(load: &Load) {
    let folder = tempfile::tempdir().unwrap();
    let (_up, ground) = server(folder.path());
    ground.contain("gRPC", load).unwrap();
}

#[test]
fn a_task_that_aborts_costs_its_neighbours_nothing() {
    contain(&usual());
}

#[test]
fn a_stack_overflow_costs_its_neighbours_nothing() {
    contain(&Load { ends: "overflow", ..usual() });
}

#[test]
fn two_tasks_that_abort_the_process_are_both_found() {
    contain(&Load { culprits: 2, ..usual() });
}

#[test]
fn jobs_are_at_their_limit_while_suspects_wait() {
    contain(&usual().with_jobs());
}

#[test]
fn after_one_kill_the_tasks_of_a_file_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path()).recover("file", &usual()).unwrap();
}

#[test]
fn a_task_that_aborts_costs_remote_neighbours_nothing() {
    contain_on_server(&usual_of_server());
}

#[test]
fn after_one_kill_remote_tasks_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_up, ground) = server(folder.path());
    ground.recover("gRPC", &usual_of_server()).unwrap();
}

#[test]
fn two_remote_tasks_that_abort_are_both_found() {
    contain_on_server(&Load { culprits: 2, ..usual_of_server() });
}

#[test]
fn remote_jobs_are_at_their_limit_while_suspects_wait() {
    contain_on_server(&usual_of_server().with_jobs());
}
