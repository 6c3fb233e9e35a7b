//! Servers and workers over a simulated network: delays, partitions, half-open streams and crashes, all from one seed, judged against the
//! promises while it runs.
//!
//! Everything is real but the network and the time: the worker with its loops, the remote store, HTTP/2, the gRPC service. Behind the
//! servers stands the reference model of a store, which outlives them as a database would.
//!
//! Reading order: [`fleet`] (who is there and what is to be done), [`weather`] (what goes wrong), [`judge`] (what must hold all the same).

pub mod clock;
pub mod dice;
pub mod fleet;
pub mod judge;
pub mod weather;

pub use fleet::{Broken, Report, run};
