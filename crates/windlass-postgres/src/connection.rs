//! Connections to the server: pools by purpose, statements, the threads that drive connections, and whether
//! the server can be reached.

pub(crate) mod calls;
pub(crate) mod conn;
pub(crate) mod driver;
pub(crate) mod error;
pub(crate) mod hosts;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod pool;
pub(crate) mod reach;
pub(crate) mod repeat;
pub(crate) mod sync;
pub(crate) mod tls;
pub(crate) mod values;
