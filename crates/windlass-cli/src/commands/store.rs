//! The commands that act on a whole store: `windlass migrate`, `backup`, `restore` and `store copy`.

pub mod backup;
pub mod copy;
pub mod migrate;
pub mod restore;
