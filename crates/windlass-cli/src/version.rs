//! What `windlass --version` says.

use std::sync::OnceLock;

/// The version of the program alone.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version, SQLite version and features.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{VERSION} (SQLite {}; features: sqlite, http API, kinds http sleep echo)",
            windlass_sqlite::sqlite_version()
        )
    })
}
