//! The built-in kinds as a worker calls them, against servers on loopback and against a made-up network.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod answers;
mod network;
mod proxies;
mod redirects;
mod secrets;
mod simple;
mod support;
mod targets;
mod tls;
