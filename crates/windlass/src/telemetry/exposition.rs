//! What `/metrics` answers, and the looks at the store behind it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use windlass_core::Name;

use super::{
    OutcomeTimes, SERIES_MAX,
    ages::Ages,
    figures::{self, KindSeries},
    meters::{Duty, Meters},
    names, process,
    sample::{self, Sample},
    series::Series,
    text::Text,
};
use crate::worker::{WorkerHandle, shared::Shared};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How often the store is looked at while somebody scrapes.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Looks take at most one part in so many of the time.
const SAMPLE_SHARE: u32 = 50;
/// So long after the last scrape the store is left alone.
const SCRAPED_FOR: Duration = Duration::from_mins(2);
/// A scrape that finds an older look than this waits for the next one.
const FRESH_MAX: Duration = Duration::from_secs(15);
/// How long a scrape waits for it.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// A look that takes longer has failed.
const SAMPLE_MAX: Duration = Duration::from_secs(10);
/// Audits read everything: they take at most one part in so many of the time.
const AUDIT_SHARE: u32 = 100;
/// Jobs that have series of their own, and whose limits are looked up: each is one look into the store.
const JOBS_MAX: usize = 50;

/// What else is shown.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The times of `http` tasks.
    pub http: Option<Arc<OutcomeTimes>>,
    /// How often the whole store is looked at for broken promises; never if there is no time.
    pub audit_every: Option<Duration>,
}

/// The metrics of a worker, its store and its process. Cheap to clone.
#[derive(Clone)]
pub struct Exposition {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    meters: Arc<Meters>,
    options: Options,
    version: String,
    sample: watch::Sender<Option<Arc<Sample>>>,
    /// Findings and time of the last audit.
    audit: watch::Sender<Option<(usize, SystemTime)>>,
    scraped: Notify,
    state: Mutex<State>,
}

/// What a scrape changes.
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
    /// The metrics of a worker; `None` if it was told to keep none.
    pub fn new(worker: &WorkerHandle, options: Options) -> Option<Self> {
        let shared = worker.shared().clone();
        let meters = shared.meters.clone()?;
        let state =
            State { kinds: Series::new(SERIES_MAX), jobs: Series::new(JOBS_MAX), scraped_at: Instant::now() };
        let inner = Inner {
            shared,
            meters,
            options,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sample: watch::Sender::new(None),
            audit: watch::Sender::new(None),
            scraped: Notify::new(),
            state: Mutex::new(state),
        };
        Some(Self { inner: Arc::new(inner) })
    }

    /// Looks at the store from time to time while somebody scrapes. Ends only by being dropped.
    pub async fn watch_store(&self) -> Infallible {
        tokio::select! {
            never = self.inner.sample_forever() => never,
            never = self.inner.audit_forever() => never,
        }
    }

    /// The text of a scrape. Reads memory and `/proc`; if the last look at the store is old, waits a moment for the next.
    pub async fn text(&self) -> String {
        let inner = &self.inner;
        inner.lock().scraped_at = Instant::now();
        inner.scraped.notify_one();
        let mut sample = inner.sample.subscribe();
        let is_fresh = |sample: &Option<Arc<Sample>>| {
            sample.as_ref().is_some_and(|sample| sample.at.elapsed() < FRESH_MAX)
        };
        // Without a fresh look the answer says that the store cannot be reached.
        let _ = tokio::time::timeout(WAIT_MAX, sample.wait_for(is_fresh)).await;
        inner.render()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sample_forever(&self) -> Infallible {
        let mut ages = Ages::default();
        loop {
            let started = Instant::now();
            let jobs = self.absorb(&self.running_jobs());
            let figures = sample::figures(&self.shared.store, &jobs, &mut ages);
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
        let Some(every) = self.options.audit_every else { return std::future::pending().await };
        loop {
            let started = Instant::now();
            let found = self.shared.store.audit().await;
            self.meters.duty(Duty::Audit, &found);
            match found {
                Ok(findings) => {
                    if let Some(first) = findings.first() {
                        tracing::error!(found = findings.len(), promise = first.promise, task = ?first.task,
                            "the audit found a broken promise; `windlass doctor --audit` names all");
                    }
                    self.audit.send_replace(Some((findings.len(), SystemTime::now())));
                }
                Err(error) => tracing::warn!(%error, "the audit failed; it is tried again"),
            }
            tokio::time::sleep(every.max(started.elapsed() * AUDIT_SHARE)).await;
        }
    }

    /// Tasks that this worker holds, by job.
    fn running_jobs(&self) -> BTreeMap<Name, [u64; 1]> {
        let mut running: BTreeMap<Name, [u64; 1]> = BTreeMap::new();
        for job in self.shared.in_flight.jobs() {
            let [n] = running.entry(job).or_default();
            *n += 1;
        }
        running
    }

    /// Takes over what was counted since the last time; answers the jobs that have series.
    fn absorb(&self, running: &BTreeMap<Name, [u64; 1]>) -> Vec<Name> {
        let (ends, rest) = self.meters.jobs.take();
        let kinds: Vec<_> =
            self.meters.kinds.iter().map(|(kind, meter)| (kind.clone(), meter.take())).collect();
        let mut state = self.lock();
        for (job, [n]) in running {
            state.jobs.weigh(job, *n);
        }
        state.jobs.add(&ends, rest);
        // A kind that has done nothing yet is shown with zeros, as long as there is room.
        for (kind, _) in &kinds {
            state.kinds.weigh(kind, 1);
        }
        state.kinds.add(&kinds, [0; super::meters::OUTCOMES.len() + 1]);
        state.jobs.named().map(|(job, _)| job.clone()).collect()
    }

    fn render(&self) -> String {
        let running = self.running_jobs();
        self.absorb(&running);
        let shared = &self.shared;
        let mut text = Text::default();
        text.family(&names::BUILD_INFO).value(&[&self.version], 1.0);
        figures::worker(&mut text, &shared.status(), &shared.counters, shared.pool.gauges().rejected);
        figures::meters(&mut text, &self.meters);
        let state = self.lock();
        figures::kinds(&mut text, &state.kinds);
        figures::jobs(&mut text, &state.jobs, running, JOBS_MAX);
        drop(state);
        if let Some(http) = &self.options.http {
            http.write(&mut text);
        }
        figures::usage(&mut text, &shared.store.usage());
        let sample = self.sample.borrow().clone();
        let figures = sample.as_ref().filter(|sample| sample.at.elapsed() < SCRAPED_FOR);
        let figures = figures.and_then(|sample| sample.figures.as_ref());
        text.one(&names::STORE_REACHABLE, f64::from(u8::from(figures.is_some())));
        if let Some(figures) = figures {
            figures::store(&mut text, figures);
        }
        if self.options.audit_every.is_some() {
            self.write_audit(&mut text);
        }
        process::write(&mut text);
        text.finish()
    }

    fn write_audit(&self, text: &mut Text) {
        let audit = *self.audit.borrow();
        let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        text.one(&names::AUDIT_TIME, audit.map_or(0.0, |(_, at)| since_1970(at)));
        if let Some((findings, _)) = audit {
            text.one(&names::AUDIT_FINDINGS, findings as f64);
        }
    }
}
