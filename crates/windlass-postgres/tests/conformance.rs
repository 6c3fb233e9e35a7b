//! The rules of every store, on PostgreSQL: each case in a schema of its own, each worker with connections of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use support::PostgresHarness;
use windlass_conformance::property::{Effort, check};

windlass_conformance::suite!(PostgresHarness::new());

/// Steps cost round trips here, so there are fewer of them than on the embedded store; `--long` has them all.
fn effort() -> Effort {
    match std::env::var_os("WINDLASS_LONG") {
        Some(_) => Effort::default(),
        None => Effort { cases: 16, steps: 100, shrink: Duration::from_secs(30) },
    }
}

#[test]
fn the_store_on_postgresql_behaves_like_the_model() {
    if let Err(difference) = check(|| Box::new(PostgresHarness::new()), effort()) {
        panic!("{difference}");
    }
}
