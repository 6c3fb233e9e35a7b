//! What `windlass --version` says.

use std::sync::OnceLock;

/// The version of the program alone.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version, and what it speaks with. The version of a PostgreSQL server is that of the server: `windlass doctor` tells it.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{VERSION} (SQLite {}; features: sqlite, postgresql, rabbitmq, http API, grpc, kinds http sleep echo)",
            windlass_sqlite::sqlite_version()
        )
    })
}
