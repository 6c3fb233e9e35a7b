//! Is the process there, and can it do its work?

use serde::{Deserialize, Serialize};

/// The answer of `/healthz` (the process answers) and `/readyz` (it can do its work; 503 if not).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthView {
    /// Whether everything is well.
    pub ok: bool,
    /// Version of the program.
    pub version: String,
    /// The first reason why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was looked at.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What: `store`, `worker`, …
    pub name: String,
    /// Whether it is well.
    pub ok: bool,
    /// What was found, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
