//! Who may call a server: tokens of the API, and the sessions of browsers that start with one. And what
//! operators did and do there.

pub mod operators;
pub mod session;
pub mod token;
