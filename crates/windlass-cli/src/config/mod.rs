//! Settings: flags over environment over `windlass.toml` over default.
//!
//! [`table`] is the one list of them; everything else here reads it: the loader, `config init`,
//! `config check` and docs/configuration.md.

pub mod access;
pub mod amqp;
pub mod docs;
pub mod file;
pub mod load;
pub mod nearest;
pub mod setting;
pub mod settings;
pub mod slots;
pub mod table;

pub use load::{Sources, load};
pub use nearest::nearest;
pub use setting::{Setting, Value};
pub use settings::{Origin, Resolved, Settings};
