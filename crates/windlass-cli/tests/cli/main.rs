//! Tests the program as a user runs it: as a process, by its output and its exit code.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by failing"
)]

mod access;
mod demo;
mod doors;
mod gates;
mod http_guide;
mod offline;
mod operate;
mod presets;
mod remote;
mod server;
mod settings;
mod stop;
mod store_copy;
mod stores;
mod support;
mod target;
