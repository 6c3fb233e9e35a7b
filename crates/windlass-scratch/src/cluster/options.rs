//! The options of a cluster.

use std::path::PathBuf;

/// The options of a [`Cluster`](crate::Cluster). The defaults: durable, open to role `windlass` without a
/// password, 100 connections, no TLS.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) password: Option<String>,
    pub(crate) with_tls: bool,
    pub(crate) parent: Option<PathBuf>,
}

impl ClusterOptions {
    /// A durable server with the settings of a fresh installation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Commits do not wait for the disk: faster, but lost when the machine stops. A server that is stopped in
    /// any [`Mode`](crate::Mode) still keeps every commit.
    #[must_use]
    pub fn without_fsync(self) -> Self {
        self.set("fsync", "off").set("full_page_writes", "off")
    }

    /// How many connections the server accepts, including those of superusers.
    #[must_use]
    pub fn max_connections(self, count: u32) -> Self {
        self.set("max_connections", count.to_string())
    }

    /// Adds a line to `postgresql.conf`; the last line of a name counts.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Requires this password from role `windlass` (SCRAM).
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Gives the server a certificate for `localhost` and `127.0.0.1`, signed by an authority that is created
    /// at the start; see [`Cluster::ca_path`](crate::Cluster::ca_path). The server still accepts connections
    /// without TLS.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self) -> Self {
        self.with_tls = true;
        self
    }

    /// The parent of the server's own folder, instead of the folder for temporary files. For benchmarks on a
    /// chosen disk: `/tmp` may be in memory.
    #[must_use]
    pub fn folder(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }
}
