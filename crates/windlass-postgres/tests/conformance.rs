//! The rules of every store, on PostgreSQL: each case in a schema of its own, each worker with connections of
//! its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use support::PostgresHarness;
use windlass_conformance::property::{Effort, check, explore};
use windlass_core::{Event, State};

windlass_conformance::suite!(PostgresHarness::new());

/// Steps cost round trips here, so there are fewer of them than on the embedded store; `--long` runs all of
/// them.
#[test]
fn the_store_on_postgresql_behaves_like_the_model() {
    let make = || -> Box<dyn windlass_conformance::Harness> { Box::new(PostgresHarness::new()) };
    let is_long = std::env::var_os("WINDLASS_LONG").is_some();
    let short = Effort { cases: 40, steps: 100, shrink: Duration::from_secs(30) };
    let coverage = if is_long { check(make, Effort::default()) } else { explore(make, short) };
    match coverage {
        // Three crashes of one task are rare in so few runs; a case of the suite tests what they lead to.
        Ok(coverage) => assert!(
            coverage.missing().iter().all(|step| *step == (State::Running, Event::CrashOut)),
            "moves that were never made: {:?}",
            coverage.missing()
        ),
        Err(difference) => panic!("{difference}"),
    }
}
