//! What operators see and change.

pub mod cancel;
pub mod filter;
pub mod inspect;
pub mod pause;
pub mod redrive;
pub mod remove;
pub mod why;
