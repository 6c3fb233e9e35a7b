//! The rules of every store, as tests.
//!
//! - [`suite!`] turns the named cases of [`CASES`] into tests of one store.
//! - [`property::check`] runs a store beside the [`Model`], step by step, and compares everything that a
//!   caller can see.
//! - [`Fault`] breaks the model on purpose, one promise at a time, to show that the cases catch it.
//! - [`Staged`] wraps a store so that its calls fail, hang or lose their answers, as a test tells it.
//!
//! A new store implements [`Harness`] and calls the first two; see the tests of this crate.

#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a case is a test: it fails by panicking"
)]
pub mod cases;
mod claims;
pub mod fault;
pub mod harness;
pub mod memory;
pub mod model;
pub mod promise;
pub mod property;
pub mod staged;
pub mod suite;

pub use fault::Fault;
pub use harness::{Harness, MemoryHarness};
pub use memory::MemoryStore;
pub use model::Model;
pub use promise::Promise;
pub use staged::Staged;
pub use suite::{CASES, Case, run};
