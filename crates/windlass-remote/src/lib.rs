//! A store over gRPC: a worker on another machine, without database credentials, works like a local one.
//!
//! ```text
//! client, worker ─► RemoteStore ─► call (deadline, errors) ─► channel (one server) ─► server ─► store
//! ```
//!
//! A worker's store also has a stream, over which a server pushes tasks for free slots.
//!
//! Every call has a number or key that makes it safe to repeat (a claim's number, a batch's number, an
//! idempotency key). So a lost answer means the same as with a local store: [`windlass_core::Error::Unknown`]
//! if the call may have taken effect.

mod call;
mod channel;
mod cork;
mod gates;
mod hints;
mod network;
mod options;
mod push;
mod schedules;
mod source;
mod store;
mod stream;
mod tls;

#[doc(hidden)]
pub use network::{Connecting, Duplex, Network, Simulated};
pub use options::{Options, Servers};
pub use store::RemoteStore;
#[doc(hidden)]
pub use tls::client_config;
