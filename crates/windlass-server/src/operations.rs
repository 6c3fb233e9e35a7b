//! What can be done with a store, independent of transport: the HTTP API and a command line without a server
//! call the same functions.

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::Duration,
};

use serde_json::Value;
use windlass::{
    inside::Adds,
    telemetry::{ConsumerSource, Exposition},
    trace::Tracer,
};
use windlass_core::{
    Name, Payload, TaskId,
    store::{Changed, SharedStore},
};

use crate::{
    api::{ErrorCode, ErrorDetail, WorkerStatusView},
    watch::Watch,
};

mod activity;
mod change;
mod dead;
mod enqueue;
mod fleet;
mod health;
mod jobs;
mod list;
mod runs;
mod schedules;
mod sessions;
mod tokens;
mod view;
mod wait;
mod watched;
mod workflows;

pub use dead::DEAD_SCAN_MAX;
pub(crate) use enqueue::Refused;
pub use enqueue::new_task::DURATION_MAX_MS;
pub use health::{Probe, STORE_ANSWER_MAX, Vitals};
pub(crate) use list::page_limit;
pub use list::{EXPORT_DEFAULT, EXPORT_MAX, Export, LIST_BYTES_MAX, LIST_LIMIT_DEFAULT};
pub(crate) use schedules::passed_sentence;
pub use wait::{Ended, WAIT_DEFAULT};

/// The result of an operation.
pub type Result<T, E = ErrorDetail> = std::result::Result<T, E>;

/// Removes secrets from a payload of a kind before it is shown.
pub type Redactor = Arc<dyn Fn(&Name, Payload) -> Payload + Send + Sync>;

/// Says what is wrong with a payload of a kind before it is stored, without quoting the payload.
pub type PayloadCheck = Arc<dyn Fn(&Name, &Payload) -> Result<(), String> + Send + Sync>;

/// The status of the worker in this process, if there is one.
pub type WorkerStatus = Arc<dyn Fn() -> Option<WorkerStatusView> + Send + Sync>;

/// The version that this program reports.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that clients and operators can do. Cheap to clone.
#[derive(Clone)]
pub struct Operations {
    store: SharedStore,
    redact: Redactor,
    check: PayloadCheck,
    worker_status: WorkerStatus,
    probes: Vec<Probe>,
    waits: wait::Waits,
    live_kinds: Arc<enqueue::LiveKinds>,
    schedules_changed: Arc<dyn Fn() + Send + Sync>,
    exposition: Option<Exposition>,
    tracer: Option<Tracer>,
    /// Where new tasks are added, if not directly to the store.
    adds: Arc<OnceLock<Arc<dyn Adds>>>,
    enqueued: Arc<AtomicU64>,
    watch: Arc<Watch>,
    board: Arc<fleet::consumers::Board>,
    consumers_here: Option<ConsumerSource>,
    runs: Arc<runs::Inbox>,
    version: Arc<str>,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Operations {
    /// Operations on a store: no payload is redacted, every payload is accepted, and the process has no
    /// worker.
    pub fn new(store: SharedStore) -> Self {
        Self {
            waits: wait::on_store(Arc::clone(&store)),
            store,
            redact: Arc::new(|_, payload| payload),
            check: Arc::new(|_, _| Ok(())),
            worker_status: Arc::new(|| None),
            probes: Vec::new(),
            live_kinds: Arc::default(),
            schedules_changed: Arc::new(|| ()),
            exposition: None,
            tracer: None,
            adds: Arc::default(),
            enqueued: Arc::default(),
            watch: Arc::default(),
            board: Arc::default(),
            consumers_here: None,
            runs: Arc::default(),
            version: VERSION.into(),
        }
    }

    /// Shows payloads as this function leaves them.
    #[must_use]
    pub fn redact(mut self, redact: impl Fn(&Name, Payload) -> Payload + Send + Sync + 'static) -> Self {
        self.redact = Arc::new(redact);
        self
    }

    /// Shows the JSON payloads of one kind as this function leaves them. A payload that it cannot read (not
    /// JSON, or nested too deep to be built) is shown as size and digest, never as it is.
    #[must_use]
    pub fn redact_json(self, kind: &'static str, redact: fn(Value) -> Value) -> Self {
        let before = Arc::clone(&self.redact);
        self.redact(move |of, payload| {
            if of.as_str() != kind {
                return before(of, payload);
            }
            let redacted = payload.decode().ok().and_then(|value| Payload::json(&redact(value)).ok());
            redacted.unwrap_or_else(|| Payload::bytes(payload.as_bytes()))
        })
    }

    /// Refuses payloads that this function finds wrong.
    #[must_use]
    pub fn check_payload(
        mut self,
        check: impl Fn(&Name, &Payload) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    /// Reports the status of the worker in this process.
    #[must_use]
    pub fn worker_status(
        mut self,
        status: impl Fn() -> Option<WorkerStatusView> + Send + Sync + 'static,
    ) -> Self {
        self.worker_status = Arc::new(status);
        self
    }

    /// Adds a condition for the process to be ready. The probe returns what is wrong, if anything. A draining
    /// process is not ready.
    #[must_use]
    pub fn ready_if(
        mut self,
        name: &str,
        probe: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.probes.push(Probe { name: name.into(), look: Arc::new(probe) });
        self
    }

    /// Waits for the end of tasks through this function. By default each waiter asks the store by itself; a
    /// process that shares one query among all its waiters passes its own function.
    #[must_use]
    pub fn wait_with<F, E>(mut self, ended: F) -> Self
    where
        F: Fn(Vec<TaskId>, Duration) -> E + Send + Sync + 'static,
        E: Future<Output = wait::Ended> + Send + 'static,
    {
        self.waits = Arc::new(move |ids, wait| Box::pin(ended(ids, wait)));
        self
    }

    /// Calls this function when a schedule has changed, so that the worker of this process need not poll for
    /// that.
    #[must_use]
    pub fn on_schedules_changed(mut self, changed: impl Fn() + Send + Sync + 'static) -> Self {
        self.schedules_changed = Arc::new(changed);
        self
    }

    /// Shows these metrics to a monitor.
    #[must_use]
    pub fn metrics(mut self, exposition: Option<Exposition>) -> Self {
        self.exposition = exposition;
        self
    }

    /// Adds new tasks through `adds`, which can send them directly to waiting workers. Only the first call
    /// has an effect.
    pub(crate) fn set_adds(&self, adds: Arc<dyn Adds>) {
        let _ = self.adds.set(adds);
    }

    pub(crate) fn adds(&self) -> &dyn Adds {
        match self.adds.get() {
            Some(adds) => &**adds,
            None => &self.store,
        }
    }

    /// Records every enqueue as a span of a trace. The tasks carry the trace to their workers.
    #[must_use]
    pub fn tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Reports this version instead of the crate's own.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// The store that the operations use.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }
}

/// The only answer to a change of one task.
fn only(changed: Vec<Changed>, what: &dyn fmt::Display) -> Result<Changed> {
    changed
        .into_iter()
        .next()
        .ok_or_else(|| ErrorDetail::new(ErrorCode::NotFound, format!("task {what} not found")))
}

/// A duration of a request; an absurdly long one is refused with the name of its field.
pub(crate) fn duration(name: &str, ms: u64) -> Result<Duration> {
    if ms > DURATION_MAX_MS {
        return Err(ErrorDetail::invalid(format!("{name} is {ms}; at most {DURATION_MAX_MS} (ten years)")));
    }
    Ok(Duration::from_millis(ms))
}
