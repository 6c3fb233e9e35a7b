//! What the other crates of Windlass use of this one. No application needs it, and it may change in any
//! release.

pub(crate) mod backoff;
pub(crate) mod home;
pub(crate) mod quota;

pub use windlass_core::percent;

pub use self::{
    backoff::{Backoff, Waiting},
    home::Home,
    quota::{Line, Quota},
};
pub use crate::{
    schedule::tick::{Ticked, fire},
    telemetry::ages::Ages,
    trace::enqueue::{Adds, enqueue},
};
