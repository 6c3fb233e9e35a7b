//! A whole store from elsewhere.

#[doc(hidden)]
pub mod import;
pub(crate) mod rows;
