//! A worker before it runs: its state, its handlers, its settings.

use std::{fmt, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use windlass_core::{Error, Name, Result, store::SharedStore};

use crate::{
    admission::Controller,
    handler::{
        AsyncCall, Handler, IntoOutcome, RawHandler, erase, extract::Provides, layer::Layer,
        registry::Registry,
    },
    lifecycle::shutdown::Shutdown,
    task::Task,
    trace::Tracer,
    worker::{DrainReport, Worker, WorkerConfig, WorkerError},
};

/// Builds a worker. `S` is the list of the states given so far.
///
/// The builder stores a mistake, such as a bad name or a kind with two handlers, and [`WorkerBuilder::build`]
/// and [`WorkerBuilder::run`] report it, so that the calls chain.
#[must_use = "a builder does nothing until `.run(…)` or `.build()`"]
pub struct WorkerBuilder<S = ()> {
    pub(crate) store: SharedStore,
    states: S,
    pub(crate) registry: Registry,
    pub(crate) config: WorkerConfig,
    admission: Option<Controller>,
    fault: Option<Error>,
}

impl WorkerBuilder {
    /// A worker on this store, with no handlers and the default settings.
    pub fn new(store: SharedStore) -> Self {
        let (registry, config) = (Registry::new(), WorkerConfig::default());
        Self { store, states: (), registry, config, admission: None, fault: None }
    }
}

impl<S> WorkerBuilder<S> {
    /// Adds a value that handlers registered after it may ask for as [`State<T>`](crate::State).
    ///
    /// Give each type once: with two values of one type the compiler cannot choose and reports an error.
    pub fn state<T: Clone + Send + Sync + 'static>(self, state: T) -> WorkerBuilder<(T, S)> {
        let Self { store, states, registry, config, admission, fault } = self;
        WorkerBuilder { store, states: (state, states), registry, config, admission, fault }
    }

    /// Adds the handler of the kind that its payload type names.
    ///
    /// ```
    /// use windlass::{Context, State, Task, Worker};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, Task)]
    /// struct Greet(String);
    ///
    /// async fn greet(
    ///     Greet(name): Greet,
    ///     ctx: Context,
    ///     State(word): State<&'static str>,
    /// ) -> Result<(), String> {
    ///     println!("{word} {name}, attempt {}", ctx.attempt());
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main] async fn main() -> anyhow::Result<()> {
    /// let store = windlass::open("sqlite::memory:").await?;
    /// let worker = Worker::builder(store).state("hello").handle(greet).build()?;
    /// # Ok(()) }
    /// ```
    pub fn handle<H, Args, Places>(self, handler: H) -> Self
    where
        H: Handler<Args>,
        H::Payload: Task,
        H::Called: AsyncCall<Returns: IntoOutcome, Future: Send>,
        H::States: Clone + Send + Sync + 'static,
        S: Provides<H::States, Places>,
        Args: 'static,
    {
        let raw = erase(handler, self.states.provide());
        self.raw(H::Payload::KIND, raw)
    }

    /// Adds a handler for the kind `kind`; its payload is any type that serde reads.
    pub fn handle_kind<H, Args, Places>(self, kind: &str, handler: H) -> Self
    where
        H: Handler<Args>,
        H::Payload: DeserializeOwned + Send,
        H::Called: AsyncCall<Returns: IntoOutcome, Future: Send>,
        H::States: Clone + Send + Sync + 'static,
        S: Provides<H::States, Places>,
        Args: 'static,
    {
        let raw = erase(handler, self.states.provide());
        self.raw(kind, raw)
    }

    /// Adds an untyped handler for a kind.
    pub fn raw(mut self, kind: &str, handler: Arc<dyn RawHandler>) -> Self {
        let added = Name::new("kind", kind).and_then(|kind| self.registry.insert(kind, handler));
        self.keep_fault(added);
        self
    }

    /// Adds a [`Layer`] around every run of every handler, inside the layers added before.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.registry.add_layer(Arc::new(layer));
        self
    }

    /// Records every attempt as spans of a trace; give the same tracer to the [`Client`](crate::Client).
    pub fn tracer(mut self, tracer: Tracer) -> Self {
        self.registry.set_tracer(tracer);
        self
    }

    /// The controller that sets how many of the slots may be used, shared with other workers, pools and
    /// consumers of the process. Without one the worker makes its own from [`WorkerConfig::admission`].
    pub fn admission(mut self, controller: Controller) -> Self {
        self.admission = Some(controller);
        self
    }

    /// Replaces all settings; call it before methods that change one setting.
    pub fn config(mut self, config: WorkerConfig) -> Self {
        self.config = config;
        self
    }

    /// How many tasks run at once.
    pub fn slots(mut self, slots: u32) -> Self {
        self.config.slots = slots;
        self
    }

    /// Serves only these queues; without this call, all.
    pub fn queues<Q: AsRef<str>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        let names: Result<Vec<_>> = queues.into_iter().map(|queue| Name::new("queue", queue)).collect();
        let set = names.map(|names| self.config.queues = names);
        self.keep_fault(set);
        self
    }

    /// How long a stop waits for running tasks before it hands them back.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.drain_timeout = timeout;
        self
    }

    /// Checks the settings and returns the worker.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad name, a kind with two handlers, or a setting out of its bounds.
    pub fn build(self) -> Result<Worker> {
        match (self.fault, self.admission) {
            (Some(fault), _) => Err(fault),
            (None, None) => Worker::new(self.store, self.registry, self.config),
            (None, Some(controller)) => {
                Worker::with_controller(self.store, self.registry, self.config, controller)
            }
        }
    }

    /// Runs the worker until `shutdown` resolves and every running task has ended or was handed back.
    ///
    /// # Errors
    /// Errors of [`WorkerBuilder::build`], and failures that end a worker early.
    pub async fn run(self, shutdown: impl Shutdown) -> Result<DrainReport, WorkerError> {
        self.build().map_err(WorkerError::Store)?.run(shutdown).await
    }

    /// Keeps the first error: later ones often follow from it.
    fn keep_fault(&mut self, result: Result<()>) {
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }
}

impl<S> fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("kinds", &self.registry)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
