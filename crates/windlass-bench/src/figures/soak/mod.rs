//! Long runs: does a figure grow that should not?

pub(super) mod growth;
pub(super) mod mixed;

mod api;
mod flaky;
mod fleet;
mod load;
mod series;
