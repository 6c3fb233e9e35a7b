//! Leases: how a worker gets, keeps and loses them, and what becomes of its tasks then.

pub mod expiry;
pub mod forgotten;
pub mod lease;
pub mod reconcile;
pub mod unclaim;
