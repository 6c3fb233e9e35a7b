//! Over gRPC on PostgreSQL: each case in a schema of its own.

use support::PostgresHarness;

use crate::harness::Remote;

#[path = "../../../windlass-postgres/tests/support/mod.rs"]
pub mod support;

windlass_conformance::suite!(Remote::new(PostgresHarness::new()));
