//! The commands that say who has access: `windlass token` and `windlass sessions`.

pub mod sessions;
pub mod token;
