//! Bulk runs, and the last calls that changed something.

mod activity;
mod fleet;
mod runs;
