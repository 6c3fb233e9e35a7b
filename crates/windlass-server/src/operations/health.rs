//! Healthy and ready (LIVENESS-TRUTH).

use std::{fmt, sync::Arc, time::Duration};

use windlass::telemetry::Exposition;
use windlass_core::store::SharedStore;

use super::{Operations, Result};
use crate::api::{Check, ErrorCode, ErrorDetail, HealthView};

/// How long the store may take to answer before it counts as not answering.
pub const STORE_ANSWER_MAX: Duration = Duration::from_secs(2);

/// A condition that must hold for this process to be ready.
#[derive(Clone)]
pub struct Probe {
    pub(super) name: Arc<str>,
    pub(super) look: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// What a monitor asks any process: whether it runs, whether it can do its work, and its metrics. Cheap to
/// clone.
#[derive(Clone)]
pub struct Vitals {
    pub(super) store: Option<SharedStore>,
    pub(super) probes: Vec<Probe>,
    pub(super) exposition: Option<Exposition>,
    pub(super) version: Arc<str>,
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vitals").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Vitals {
    /// The store of the process, if it has any.
    pub(crate) fn store(&self) -> Option<&SharedStore> {
        self.store.as_ref()
    }

    /// The health of a process that uses this store, if it has one.
    pub fn new(store: Option<SharedStore>) -> Self {
        Self { store, probes: Vec::new(), exposition: None, version: super::VERSION.into() }
    }

    /// Adds a condition for this process to be ready. The probe returns what is wrong, if anything.
    #[must_use]
    pub fn ready_if(
        mut self,
        name: &str,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.probes.push(Probe { name: name.into(), look: Arc::new(probe) });
        self
    }

    /// Shows these metrics to a monitor.
    #[must_use]
    pub fn metrics(mut self, exposition: Option<Exposition>) -> Self {
        self.exposition = exposition;
        self
    }

    /// Reports this version instead of the crate's own.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// The process answers; nothing else is checked.
    pub fn health(&self) -> HealthView {
        HealthView { ok: true, version: self.version.to_string(), reason: None, checks: Vec::new() }
    }

    /// Whether this process can do its work: its store answers in time, and every probe reports success.
    pub async fn ready(&self) -> HealthView {
        // The probes come first: while a process drains, the answer must name the drain as the reason.
        let mut checks: Vec<_> = self.probes.iter().map(|probe| check(&probe.name, (probe.look)())).collect();
        if let Some(store) = &self.store {
            checks.push(check("store", answers(store).await));
        }
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
}

impl Operations {
    /// What a monitor asks this process.
    pub fn vitals(&self) -> Vitals {
        Vitals {
            store: Some(self.store.clone()),
            probes: self.probes.clone(),
            exposition: self.exposition.clone(),
            version: self.version.clone(),
        }
    }

    /// The process answers; nothing else is checked.
    pub fn health(&self) -> HealthView {
        self.vitals().health()
    }

    /// Whether this process can do its work: its store answers in time, and every probe reports success.
    pub async fn ready(&self) -> HealthView {
        self.vitals().ready().await
    }

    /// The metrics of this process, in Prometheus' text format.
    pub async fn metrics_text(&self) -> Result<String> {
        self.vitals().metrics_text().await
    }
}

async fn answers(store: &SharedStore) -> Result<(), String> {
    match tokio::time::timeout(STORE_ANSWER_MAX, store.paused_queues()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", STORE_ANSWER_MAX.as_secs())),
    }
}

fn check(name: &str, result: Result<(), String>) -> Check {
    Check { name: name.to_owned(), ok: result.is_ok(), detail: result.err() }
}
