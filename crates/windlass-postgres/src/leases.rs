//! Leases: registration, renewal, hand-back, and what becomes of the tasks of a worker that is gone.

pub(crate) mod compare;
pub(crate) mod epoch;
pub(crate) mod hand_back;
pub(crate) mod register;
pub(crate) mod renew;
