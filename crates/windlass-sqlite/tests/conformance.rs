//! The rules of every store, on the embedded one: in a file for the named cases, which also restart it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::SqliteHarness;
use windlass_conformance::property::{Effort, check};
use windlass_sqlite::Durability;

windlass_conformance::suite!(SqliteHarness::new(Durability::Full));

#[test]
fn the_embedded_store_behaves_like_the_model() {
    if let Err(difference) = check(|| Box::new(SqliteHarness::new(Durability::Normal)), Effort::default()) {
        panic!("{difference}");
    }
}
