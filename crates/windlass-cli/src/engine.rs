//! Builds a worker with the built-in kinds on a store, as the settings say.

use std::{sync::Arc, time::Duration};

use windlass::{
    Worker, WorkerConfig,
    client::Waiters,
    handler::Registry,
    telemetry::{self, Exposition, OutcomeTimes},
    trace::Tracer,
    worker::{ClaimBatch, Metrics, WorkerHandle},
};
use windlass_core::{Name, TaskId, TaskRecord, store::SharedStore};
use windlass_kinds::HttpOptions;
use windlass_otlp::Exporter;
use windlass_server::{Operations, Vitals, api::WorkerStatusView};

use crate::{
    backend::local,
    config::{Settings, table},
    failure::Failure,
    store::Opened,
};

/// How long the coordinator may be silent beyond its longest pause before it counts as stuck.
const TICK_SLACK: Duration = Duration::from_secs(10);

/// The readiness reason of a worker that no longer claims.
pub const DRAINING: &str = "draining";

/// A worker that is ready to run, and what belongs to it.
pub struct Engine {
    /// The store.
    pub store: Opened,
    /// The worker.
    pub worker: Worker,
    /// A handle on it.
    pub handle: WorkerHandle,
    /// Kinds that it has handlers for, in the order of the documentation.
    pub kinds: Vec<Name>,
    /// Its settings.
    pub config: WorkerConfig,
    /// Its metrics, if metrics are kept.
    pub exposition: Option<Exposition>,
    /// Where its spans go, if it is traced.
    pub spans: Option<Arc<Exporter>>,
}

/// Builds a worker on an open store.
pub fn build(settings: &Settings, store: Opened, spans: Option<Arc<Exporter>>) -> anyhow::Result<Engine> {
    let http_times = Arc::new(OutcomeTimes::default());
    let mut registry = Registry::new();
    let mut kinds = Vec::new();
    for (kind, handler) in windlass_kinds::builtin(http_options(settings, Some(&http_times))?)
        .map_err(|error| Failure::usage(error.to_string()))?
    {
        let kind = Name::new("kind", kind)?;
        kinds.push(kind.clone());
        registry.insert(kind, handler)?;
    }
    let tracer = spans.clone().map(|spans| Tracer::new(spans));
    if let Some(tracer) = &tracer {
        registry.set_tracer(tracer.clone());
    }
    let config = worker_config(settings)?;
    let worker = Worker::new(store.store.clone(), registry, config.clone())?;
    let handle = worker.handle();
    let audit = settings.duration(&table::AUDIT_MS);
    let audit_every = (!audit.is_zero()).then_some(audit);
    let options =
        telemetry::Options { http: Some(http_times), audit_every, tracer, ..telemetry::Options::default() };
    let exposition = Exposition::new(&handle, options);
    Ok(Engine { store, worker, handle, kinds, config, exposition, spans })
}

/// How requests to HTTP targets are made, and where their durations are recorded.
pub fn http_options(settings: &Settings, times: Option<&Arc<OutcomeTimes>>) -> anyhow::Result<HttpOptions> {
    let networks = settings.list(&table::ALLOW_TARGET);
    let allow_targets = networks
        .iter()
        .map(|text| text.parse().map_err(|_| Failure::usage(format!("allow_target has {text:?}"))))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(HttpOptions {
        allow_targets,
        env_headers: settings.list(&table::HTTP_HEADER_ENV),
        use_env_proxy: settings.text(&table::HTTP_PROXY) == "environment",
        output_max_bytes: settings.rules().output_max_bytes,
        times: times.cloned(),
        ..HttpOptions::default()
    })
}

/// The worker's settings.
pub fn worker_config(settings: &Settings) -> anyhow::Result<WorkerConfig> {
    let size = settings.number(&table::CLAIM_BATCH_SIZE) as u32;
    let claim_batch = if settings.is_given(&table::CLAIM_BATCH_SIZE) {
        ClaimBatch::AtMost(size)
    } else {
        ClaimBatch::From(size)
    };
    let queues = settings.list(&table::QUEUES);
    Ok(WorkerConfig {
        slots: settings.slots.number,
        queues: queues.iter().map(|queue| Name::new("queue", queue)).collect::<Result<_, _>>()?,
        claim_batch,
        poll_interval: settings.duration(&table::POLL_INTERVAL_MS),
        poll_interval_max: settings.duration(&table::POLL_INTERVAL_MAX_MS),
        lease_ttl: settings.duration(&table::LEASE_TTL_MS),
        heartbeat: settings.duration(&table::HEARTBEAT_MS),
        sweep: settings.duration(&table::SWEEP_MS),
        drain_timeout: settings.duration(&table::DRAIN_TIMEOUT_MS),
        retention: settings.retention(),
        metrics: if settings.text(&table::METRICS) == "off" { Metrics::Off } else { Metrics::On },
        admission: settings.admission(),
        ..WorkerConfig::default()
    })
}

/// The operations of the API on this worker's store.
pub fn operations(engine: &Engine) -> Operations {
    let store = engine.store.store.clone();
    let waiters = Waiters::new(store.clone());
    let (status, probe, ticker) = (engine.handle.clone(), engine.handle.clone(), engine.handle.clone());
    let (kinds, queues) = (engine.kinds.clone(), engine.config.queues.clone());
    let silence_max = engine.config.poll_interval_max + TICK_SLACK;
    let lease_ttl = engine.config.lease_ttl;
    local::operations(engine.store.store.clone())
        .metrics(engine.exposition.clone())
        .worker_status(move || Some(worker_view(&status, &kinds, &queues)))
        .ready_if("worker", move || readiness(&probe, silence_max, lease_ttl))
        .tracer(engine.spans.clone().map(|spans| Tracer::new(spans)))
        .on_schedules_changed(move || ticker.wake_schedules())
        .wait_with(move |ids, wait| {
            let (waiters, store) = (waiters.clone(), store.clone());
            async move { ended(&waiters, &store, ids, wait).await }
        })
}

/// Whether this process does its work, for the service manager's watchdog. It asks what `/readyz` asks,
/// but a draining process also counts as working.
pub fn alive(vitals: Vitals) -> impl AsyncFn() -> bool + Send + 'static {
    async move || {
        let health = vitals.ready().await;
        health.checks.iter().all(|check| check.ok || check.detail.as_deref() == Some(DRAINING))
    }
}

/// Waits for tasks to end. Waits for single tasks share one query per interval, so a thousand of them
/// cost the store no more than one. A wait for a list has a query of its own.
async fn ended(
    waiters: &Waiters,
    store: &SharedStore,
    ids: Vec<TaskId>,
    wait: Duration,
) -> windlass_core::Result<Vec<(TaskId, Option<TaskRecord>)>> {
    let &[id] = ids.as_slice() else {
        return store.ended(&ids, wait).await;
    };
    match tokio::time::timeout(wait, waiters.ended(id)).await {
        Ok(Ok(task)) => Ok(vec![(id, Some(task))]),
        Ok(Err(windlass_core::Error::NotFound(_))) => Ok(vec![(id, None)]),
        Ok(Err(error)) => Err(error),
        // The time may be up before the next shared query: ask once more without waiting.
        Err(_) => store.ended(&ids, Duration::ZERO).await,
    }
}

fn worker_view(handle: &WorkerHandle, kinds: &[Name], queues: &[Name]) -> WorkerStatusView {
    let status = handle.status();
    WorkerStatusView {
        id: (status.worker.0 != 0).then(|| status.worker.to_string()),
        slots: status.slots,
        in_flight: status.running,
        available: status.allowed.saturating_sub(status.running),
        allowed: status.allowed,
        factor: status.factor,
        reason: status.reasons.to_string(),
        memory_usage: status.memory_usage,
        unsettled: status.unsettled,
        draining: status.draining,
        kinds: kinds.to_vec(),
        queues: queues.to_vec(),
        claimed: status.claimed,
        succeeded: status.succeeded,
        failed: status.ended.saturating_sub(status.succeeded + status.handed_back),
    }
}

/// Ready means: the process does not drain, the coordinator completes its rounds, and the lease is
/// renewed (LIVENESS-TRUTH).
fn readiness(handle: &WorkerHandle, silence_max: Duration, lease_ttl: Duration) -> Result<(), String> {
    let status = handle.status();
    if status.draining {
        return Err(DRAINING.to_owned());
    }
    if status.worker.0 == 0 {
        return Err("the worker has lost its lease and has not registered anew yet".to_owned());
    }
    if status.renewed_ago > lease_ttl {
        return Err(format!("the worker's lease was last renewed {} s ago", status.renewed_ago.as_secs()));
    }
    // While every slot is taken, the coordinator rightly waits until one is free.
    if status.running < status.slots && status.ticked_ago > silence_max {
        return Err(format!("the coordinator last completed a round {} s ago", status.ticked_ago.as_secs()));
    }
    Ok(())
}
