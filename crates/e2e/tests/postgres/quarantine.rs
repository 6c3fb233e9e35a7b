//! POISON-CONTAINED: a task that takes its process down, again and again, on PostgreSQL.
//! `WINDLASS_LONG=1` makes it 1,000 tasks
//! of a second on 1,000 slots, and prints what it cost.

use std::path::Path;

use e2e::{
    containment::{Ground, Load},
    postgres::Place,
};

fn ground(place: &Place) -> Ground {
    let mut ground =
        Ground::new(Path::new(env!("CARGO_BIN_EXE_aborter")), place.url()).leased(crate::is_long());
    ground.options.push(format!("schema={}", place.schema()));
    ground
}

fn usual() -> Load {
    Load::of(100, crate::is_long())
}

fn contain(load: &Load) {
    let place = Place::shared().unwrap();
    ground(&place).contain("PostgreSQL", load).unwrap();
}

#[test]
fn a_task_that_aborts_costs_its_neighbours_nothing() {
    contain(&usual());
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
fn after_one_kill_the_tasks_run_at_once() {
    let place = Place::shared().unwrap();
    ground(&place).recover("PostgreSQL", &usual()).unwrap();
}
