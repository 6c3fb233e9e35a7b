//! The control plane of Windlass: the operations, free of transport, and the HTTP/JSON API around them.
//!
//! Reading order: [`api`] (what goes over the wire, shared with every client), [`operations`] (what can be
//! done, over any store), [`http`] (the same over HTTP).

pub mod api;
pub mod http;
pub mod json;
pub mod operations;

pub use operations::{Operations, Vitals};
