//! The file and the threads that use it: one writer with group commit, a few readers, the lock.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod checkpoint;
pub(crate) mod disk;
pub(crate) mod error;
pub(crate) mod linger;
pub(crate) mod lock;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod reader;
pub(crate) mod tx;
pub(crate) mod writer;
