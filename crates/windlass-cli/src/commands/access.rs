//! The commands that say who has access, and who used it: `windlass token`, `windlass sessions` and
//! `windlass activity`.

pub mod activity;
pub mod sessions;
pub mod token;
