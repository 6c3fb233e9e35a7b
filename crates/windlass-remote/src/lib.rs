//! A store over gRPC: a worker on another machine, without database credentials, is the same worker.
//!
//! ```text
//! worker, client ─► RemoteStore ─► call (deadline, errors) ─► channel (one of several servers) ─► server ─► store
//! ```
//!
//! A worker's store has a stream besides, over which a server pushes what the worker has slots for.
//!
//! Every call names what makes it safe to repeat (a claim's number, a batch's number, a key), so a lost answer means here
//! what it means beside the store: [`windlass_core::Error::Unknown`] if the call may have taken effect.

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
