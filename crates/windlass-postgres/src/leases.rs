//! Leases: registration, renewal, hand-back, and what happens to the tasks of a worker that has left or died.

pub(crate) mod compare;
pub(crate) mod epoch;
pub(crate) mod hand_back;
pub(crate) mod register;
pub(crate) mod renew;
