//! The rules of every store, on the embedded one. The named cases use a file and also restart the store.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use support::SqliteHarness;
use windlass_conformance::property::{Effort, check};
use windlass_core::LeaseRef;
use windlass_sqlite::Durability;

windlass_conformance::suite!(SqliteHarness::new(Durability::Full).forgetting(forget));

/// The state after a power cut that undid a claim.
fn forget(path: &Path, claimed: LeaseRef) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let changed = conn.execute(
        "UPDATE task SET state = 1, lease = lease - 1, attempt = attempt - 1, worker = NULL, claim_no = NULL, \
         claimed_at = NULL WHERE id = ?1 AND lease = ?2 AND state = 2",
        (claimed.id.raw(), claimed.lease),
    );
    assert_eq!(changed, Ok(1));
}

#[test]
fn the_embedded_store_behaves_like_the_model() {
    if let Err(difference) = check(|| Box::new(SqliteHarness::new(Durability::Normal)), Effort::default()) {
        panic!("{difference}");
    }
}
