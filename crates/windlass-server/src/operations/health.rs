//! Healthy and ready (LIVENESS-TRUTH).

use std::{sync::Arc, time::Duration};

use super::{Operations, Result};
use crate::api::{Check, ErrorCode, ErrorDetail, HealthView};

/// How long the store may take to answer before it counts as not answering.
pub const STORE_ANSWER_MAX: Duration = Duration::from_secs(2);

/// Something that must be well for this process to be ready.
#[derive(Clone)]
pub struct Probe {
    pub(super) name: Arc<str>,
    pub(super) look: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Operations {
    /// The process answers; nothing else is looked at.
    pub fn health(&self) -> HealthView {
        HealthView { ok: true, version: self.version.to_string(), reason: None, checks: Vec::new() }
    }

    /// Whether this process can do its work: its store answers in time, and every probe is well.
    pub async fn ready(&self) -> HealthView {
        // The probes come first: while a process drains, that is the reason to tell.
        let mut checks: Vec<_> = self.probes.iter().map(|probe| check(&probe.name, (probe.look)())).collect();
        checks.push(check("store", self.store_answers().await));
        let reason = checks
            .iter()
            .find(|check| !check.ok)
            .map(|check| format!("{}: {}", check.name, check.detail.as_deref().unwrap_or("not well")));
        HealthView { ok: reason.is_none(), version: self.version.to_string(), reason, checks }
    }

    /// The metrics of this process, in Prometheus' text format.
    pub async fn metrics_text(&self) -> Result<String> {
        match &self.exposition {
            Some(exposition) => Ok(exposition.text().await),
            None => Err(ErrorDetail::new(ErrorCode::NotFound, "this process keeps no metrics")
                .hint("set metrics = \"on\" and restart it")),
        }
    }

    async fn store_answers(&self) -> Result<(), String> {
        match tokio::time::timeout(STORE_ANSWER_MAX, self.store.paused_queues()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", STORE_ANSWER_MAX.as_secs())),
        }
    }
}

fn check(name: &str, result: Result<(), String>) -> Check {
    Check { name: name.to_owned(), ok: result.is_ok(), detail: result.err() }
}
