//! The text of `/metrics`, and the background queries to the store.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use windlass_core::{Name, store::SharedStore};

use super::{
    OutcomeTimes, SERIES_MAX,
    ages::Ages,
    audit::{Audit, Turn},
    consumers::{self, ConsumerSource},
    figures::{self, KindSeries},
    meters::{self, Meters},
    names, process,
    sample::{self, Sample},
    series::Series,
    text::Text,
};
use crate::{
    admission::Controller,
    trace::Tracer,
    worker::{WorkerHandle, shared::Shared},
};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How often the store is queried while a monitor scrapes.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Queries take at most one part in so many of the time.
const SAMPLE_SHARE: u32 = 50;
/// After so long without a scrape the store is not queried.
const SCRAPED_FOR: Duration = Duration::from_mins(2);
/// A scrape waits for the next query if the last one is older than this.
const FRESH_MAX: Duration = Duration::from_secs(15);
/// How long a scrape waits for it.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// A query that takes longer has failed.
const SAMPLE_MAX: Duration = Duration::from_secs(10);
/// Jobs that have series of their own, and whose limits are looked up: each costs one query.
const JOBS_MAX: usize = 50;

/// Optional parts of the page.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The times of `http` tasks.
    pub http: Option<Arc<OutcomeTimes>>,
    /// How often the whole store is audited for broken promises, by all of its workers together; `None`:
    /// never.
    pub audit_every: Option<Duration>,
    /// The consumers of a broker in this process.
    pub consumers: Option<ConsumerSource>,
    /// The controller of the consumers; a worker has its own.
    pub admission: Option<Controller>,
    /// The tracer whose spans are counted.
    pub tracer: Option<Tracer>,
}

/// The metrics of a worker, of consumers, of their store and their process. Cheap to clone.
#[derive(Clone)]
pub struct Exposition {
    inner: Arc<Inner>,
}

struct Inner {
    worker: Option<(Arc<Shared>, Arc<Meters>)>,
    store: Option<SharedStore>,
    options: Options,
    version: String,
    sample: watch::Sender<Option<Arc<Sample>>>,
    audit: Audit,
    scraped: Notify,
    state: Mutex<State>,
}

/// State that a scrape changes.
struct State {
    kinds: KindSeries,
    jobs: Series<1>,
    scraped_at: Instant,
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposition").finish_non_exhaustive()
    }
}

impl Exposition {
    /// The metrics of a worker; `None` if its metrics are off.
    pub fn new(worker: &WorkerHandle, options: Options) -> Option<Self> {
        let shared = worker.shared().clone();
        let meters = shared.meters.clone()?;
        let store = shared.store.clone();
        Some(Self::of(Some((shared, meters)), Some(store), options))
    }

    /// The metrics of a process that has consumers and no worker, and of the store that they write to, if
    /// any.
    pub fn without_worker(store: Option<SharedStore>, options: Options) -> Self {
        Self::of(None, store, options)
    }

    fn of(worker: Option<(Arc<Shared>, Arc<Meters>)>, store: Option<SharedStore>, options: Options) -> Self {
        let state =
            State { kinds: Series::new(SERIES_MAX), jobs: Series::new(JOBS_MAX), scraped_at: Instant::now() };
        let inner = Inner {
            worker,
            store,
            options,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sample: watch::Sender::new(None),
            audit: Audit::default(),
            scraped: Notify::new(),
            state: Mutex::new(state),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Queries the store from time to time while a monitor scrapes. Ends only by being dropped.
    pub async fn watch_store(&self) -> Infallible {
        tokio::select! {
            never = self.inner.sample_forever() => never,
            never = self.inner.audit_forever() => never,
        }
    }

    /// How many broken promises the last audit by this process found, and when it ended.
    pub fn last_audit(&self) -> Option<(usize, SystemTime)> {
        self.inner.audit.last()
    }

    /// The text of a scrape. Reads memory and `/proc`; if the last query is old, waits a moment for the next.
    pub async fn text(&self) -> String {
        let inner = &self.inner;
        if inner.store.is_none() {
            return inner.render();
        }
        inner.lock().scraped_at = Instant::now();
        inner.scraped.notify_one();
        let mut sample = inner.sample.subscribe();
        let is_fresh = |sample: &Option<Arc<Sample>>| {
            sample.as_ref().is_some_and(|sample| sample.at.elapsed() < FRESH_MAX)
        };
        // Without a fresh query the page says that the store cannot be reached.
        let _ = tokio::time::timeout(WAIT_MAX, sample.wait_for(is_fresh)).await;
        inner.render()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sample_forever(&self) -> Infallible {
        let Some(store) = &self.store else { return std::future::pending().await };
        let mut ages = Ages::default();
        loop {
            let started = Instant::now();
            let jobs = self.absorb(&self.running_jobs());
            let figures = sample::figures(store, &jobs, &mut ages);
            let figures = match tokio::time::timeout(SAMPLE_MAX, figures).await {
                Ok(Ok(figures)) => Some(figures),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the store could not be looked at for the metrics");
                    None
                }
                Err(_) => None,
            };
            self.sample.send_replace(Some(Arc::new(Sample { at: Instant::now(), figures })));
            tokio::time::sleep(SAMPLE_EVERY.max(started.elapsed() * SAMPLE_SHARE)).await;
            if self.lock().scraped_at.elapsed() > SCRAPED_FOR {
                self.scraped.notified().await;
            }
        }
    }

    async fn audit_forever(&self) -> Infallible {
        let (Some(every), Some((shared, meters))) = (self.options.audit_every, &self.worker) else {
            return std::future::pending().await;
        };
        // The first query tells how many workers share the audits; a failed one is enough too.
        let _ = self.sample.subscribe().wait_for(Option::is_some).await;
        let turn = || {
            let sample = self.sample.borrow();
            let figures = sample.as_ref().and_then(|sample| sample.figures.as_ref());
            Turn {
                live: figures.map_or(1, |figures| figures.live),
                own: shared.status().worker.0.cast_unsigned(),
            }
        };
        self.audit.keep(&shared.store, meters, every, turn).await
    }

    /// Tasks that this worker holds, by job.
    fn running_jobs(&self) -> BTreeMap<Name, [u64; 1]> {
        let mut running: BTreeMap<Name, [u64; 1]> = BTreeMap::new();
        for job in self.worker.iter().flat_map(|(shared, _)| shared.in_flight.jobs()) {
            let [n] = running.entry(job).or_default();
            *n += 1;
        }
        running
    }

    /// Adds the counts since the last call; returns the jobs that have series.
    fn absorb(&self, running: &BTreeMap<Name, [u64; 1]>) -> Vec<Name> {
        let Some((_, meters)) = &self.worker else { return Vec::new() };
        let (ends, rest) = meters.jobs.take();
        let kinds: Vec<_> = meters.kinds.iter().map(|(kind, meter)| (kind.clone(), meter.take())).collect();
        let mut state = self.lock();
        for (job, [n]) in running {
            state.jobs.weigh(job, *n);
        }
        state.jobs.add(&ends, rest);
        // A kind without any events is shown with zeros, as long as there is room.
        for (kind, _) in &kinds {
            state.kinds.weigh(kind, 1);
        }
        state.kinds.add(&kinds, [0; meters::OUTCOMES.len() + 1]);
        state.jobs.named().map(|(job, _)| job.clone()).collect()
    }

    fn render(&self) -> String {
        let mut text = Text::default();
        text.family(&names::BUILD_INFO).value(&[&self.version], 1.0);
        if let Some((shared, meters)) = &self.worker {
            self.write_worker(&mut text, shared, meters);
        }
        let consumers = self.options.consumers.as_ref().map(ConsumerSource::read);
        if let (None, Some(admission)) = (&self.worker, &self.options.admission) {
            let workers = consumers.iter().flatten().map(|one| one.workers).sum::<u64>();
            figures::admission(&mut text, &admission.status(u32::try_from(workers).unwrap_or(u32::MAX)));
        }
        if let Some(readings) = consumers {
            consumers::write(&mut text, readings);
        }
        if let Some(http) = &self.options.http {
            http.write(&mut text);
        }
        if let Some(store) = &self.store {
            figures::usage(&mut text, &store.usage());
            self.write_store(&mut text);
        }
        if self.options.audit_every.is_some() && self.worker.is_some() {
            self.audit.write(&mut text);
        }
        let spans = self.options.tracer.as_ref().map(Tracer::counts).unwrap_or_default();
        text.one(&names::SPANS_EXPORTED, spans.exported as f64);
        text.one(&names::SPANS_DROPPED, spans.dropped as f64);
        process::write(&mut text);
        text.finish()
    }

    fn write_worker(&self, text: &mut Text, shared: &Shared, meters: &Meters) {
        let running = self.running_jobs();
        self.absorb(&running);
        figures::worker(text, &shared.status(), &shared.counters, shared.pool.gauges().rejected);
        figures::meters(text, meters);
        let state = self.lock();
        figures::kinds(text, &state.kinds);
        figures::jobs(text, &state.jobs, running, JOBS_MAX);
    }

    fn write_store(&self, text: &mut Text) {
        let sample = self.sample.borrow().clone();
        let figures = sample.as_ref().filter(|sample| sample.at.elapsed() < SCRAPED_FOR);
        let figures = figures.and_then(|sample| sample.figures.as_ref());
        text.one(&names::STORE_REACHABLE, f64::from(u8::from(figures.is_some())));
        if let Some(figures) = figures {
            figures::store(text, figures);
        }
    }
}
