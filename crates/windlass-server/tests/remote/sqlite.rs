//! Over gRPC on the embedded store.

use std::time::Duration;

use support::SqliteHarness;
use windlass_conformance::property::{Effort, explore};
use windlass_sqlite::Durability;

use crate::harness::Remote;

#[path = "../../../windlass-sqlite/tests/support/mod.rs"]
pub mod support;

windlass_conformance::suite!(Remote::new(SqliteHarness::new(Durability::Normal)));

#[test]
fn the_embedded_store_behaves_like_the_model_over_grpc() {
    let make = || -> Box<dyn windlass_conformance::Harness> {
        Box::new(Remote::new(SqliteHarness::new(Durability::Normal)))
    };
    let effort = Effort { cases: 20, steps: 100, shrink: Duration::from_secs(30) };
    if let Err(difference) = explore(make, effort) {
        panic!("{difference}");
    }
}
