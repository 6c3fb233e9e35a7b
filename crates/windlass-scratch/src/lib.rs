//! Scratch servers: private PostgreSQL, PgBouncer, RabbitMQ and Prometheus for tests and benchmarks, removed
//! when dropped.
//!
//! A [`Cluster`] is a real PostgreSQL server in its own folder, on a free port of the loopback interface. It
//! affects nothing else on the machine. It ends with the value, with the process, and also when the process
//! is killed: a small shell keeps the server and ends it as soon as its pipe closes (see `keeper.sh`).
//!
//! ```no_run
//! use windlass_scratch::{Cluster, ClusterOptions};
//!
//! let cluster = Cluster::start(&ClusterOptions::new())?;
//! assert_eq!(cluster.psql("SELECT 1 + 1")?, "2");
//! # Ok::<(), windlass_scratch::Error>(())
//! ```
//!
//! Every call blocks. A start takes about a second; in async code use `spawn_blocking`, or call it directly
//! if no other task of the thread has to run meanwhile.

mod broker;
mod cluster;
mod error;
mod keeper;
mod pgbouncer;
mod programs;
mod prometheus;
mod proxy;
mod python;
#[cfg(feature = "tls")]
mod tls;

pub use broker::{Broker, SHARED_NODE_VARIABLE, TlsClients, node::Node, shared_node};
pub use cluster::{
    Cluster, Mode,
    options::ClusterOptions,
    psql::psql,
    shared::{SHARED_URL_VARIABLE, shared_url},
};
pub use error::Error;
#[doc(hidden)]
pub use keeper::mortal;
pub use pgbouncer::{PgBouncer, PoolMode, PoolOptions};
pub use prometheus::{Prometheus, promtool};
pub use proxy::{Counts, Proxy, Target};
pub use python::{python_with, python_with_psycopg};
