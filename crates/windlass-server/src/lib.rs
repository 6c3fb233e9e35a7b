//! The control plane of Windlass: the operations, independent of transport, and the HTTP/JSON and gRPC APIs
//! around them.
//!
//! Reading order: [`api`] (what goes over the wire, shared with every client), [`operations`] (what can be
//! done, over any store), [`access`] (who may do it), [`http`] (the same over HTTP), `grpc` (over gRPC, on
//! the same port), `dashboard` (pages for people).

pub mod access;
pub mod api;
mod dashboard;
mod grpc;
pub mod http;
pub mod json;
pub mod operations;
pub mod public_url;
mod watch;

pub use operations::{Operations, Vitals};
pub use watch::{RECORD_EVERY, SNAPSHOT_EVERY};
