//! The PostgreSQL store of Windlass.
