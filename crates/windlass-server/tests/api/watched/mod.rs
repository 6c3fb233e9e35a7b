//! What everyone who watches the store sees.

mod events;
mod snapshot;
