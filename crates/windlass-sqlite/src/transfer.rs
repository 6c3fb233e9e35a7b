//! A whole store as one: copies, restore, export.

pub(crate) mod backup;
#[doc(hidden)]
pub mod export;
pub(crate) mod restore;
