//! Copies a whole store in from another one.

#[doc(hidden)]
pub mod import;
pub(crate) mod rows;
