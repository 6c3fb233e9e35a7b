//! Who may call a server: tokens of the API, and the sessions of browsers that start with one.

pub mod session;
pub mod token;
