//! What `windlass --version` prints.

use std::sync::OnceLock;

/// The version of the program alone.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version, and what the program supports. `windlass doctor` shows the version of a PostgreSQL
/// server, since it is the server's own.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{VERSION} (SQLite {}; features: sqlite, postgresql, rabbitmq, http API, grpc, kinds http sleep echo)",
            windlass_sqlite::sqlite_version()
        )
    })
}
