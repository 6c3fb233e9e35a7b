//! Admission control: limits running tasks to what the machine can hold, and shows the reason.
//!
//! ```text
//!   memory ─┐                               ┌─► durable worker: claims no more than may run
//!  latency ─┼─► sample ─► Admission (core) ─┼─► in-process pool: its buffer waits
//!     ends ─┘   (own thread, 250 ms)        └─► consumers of a broker: no more start, the prefetch fits
//! ```
//!
//! One [`Controller`] serves every feeder of a process. Each attached pool may use the same share of its
//! slots. `windlass_core::admission` decides; this module reads memory, counts ends and sets the limits. A
//! task pays for it with one load of a counter.

mod latency;
mod memory;
mod sampler;

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
pub use windlass_core::admission::{AHEAD_SHARE, MemorySample, Reasons, ahead};
use windlass_core::{
    Error, Name, Result,
    admission::{Admission, MEMORY_HIGH, Seen},
};

use self::latency::Latency;
pub use self::memory::MemoryReader;
pub use self::sampler::Sampler;
pub(crate) use self::sampler::spawn;
use crate::{
    inside::quota::{Line, Quota},
    pool::Feeder,
};

/// Settings of admission control.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionConfig {
    /// Whether admission control limits tasks. If not, memory is still read and reported, and every slot may
    /// be used.
    pub is_on: bool,
    /// Above this share of memory fewer tasks may run.
    pub memory_high: f64,
    /// A limit on this process's memory in bytes, in addition to those that the system sets.
    pub memory_limit: Option<u64>,
    /// The p99 above which tasks of any kind count as slow.
    pub latency_threshold: Option<Duration>,
    /// Thresholds for single kinds, in place of the general one.
    pub kind_latency_thresholds: Vec<(Name, Duration)>,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            is_on: true,
            memory_high: MEMORY_HIGH,
            memory_limit: None,
            latency_threshold: None,
            kind_latency_thresholds: Vec::new(),
        }
    }
}

impl AdmissionConfig {
    /// Settings under which every slot may always be used.
    pub fn off() -> Self {
        Self { is_on: false, ..Self::default() }
    }

    /// Refuses a bad value with the name of the setting.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        if !(0.1..=0.95).contains(&self.memory_high) {
            return Err(Error::invalid(format!("memory_high must be 0.1 to 0.95, not {}", self.memory_high)));
        }
        if self.memory_limit == Some(0) {
            return Err(Error::invalid("memory_limit must be above 0"));
        }
        let mut thresholds = self.kind_latency_thresholds.iter().map(|(_, threshold)| *threshold);
        if self.latency_threshold.is_some_and(|threshold| threshold.is_zero())
            || thresholds.any(|t| t.is_zero())
        {
            return Err(Error::invalid("latency_threshold_ms must be above 0"));
        }
        Ok(())
    }

    fn threshold_of(&self, kind: &Name) -> Option<Duration> {
        let own = self.kind_latency_thresholds.iter().find(|(name, _)| name == kind);
        own.map(|(_, threshold)| *threshold).or(self.latency_threshold)
    }
}

/// The admission control of one process. Cheap to clone; hand the same one to every worker and pool.
#[derive(Clone)]
pub struct Controller {
    inner: Arc<Inner>,
}

struct Inner {
    config: AdmissionConfig,
    reader: MemoryReader,
    /// Kinds that have a threshold.
    kinds: RwLock<HashMap<Name, Watched>>,
    state: Mutex<State>,
    /// Whether a sample now would let more tasks start.
    is_starting: AtomicBool,
    /// Wakes the sampler: a feeder waits because of the slow start.
    wanted: Notify,
    lines: Quota,
}

struct Watched {
    latency: Latency,
    threshold: Duration,
}

struct State {
    admission: Admission,
    feeders: Vec<Feeder>,
    memory: Option<MemorySample>,
    window_began: Instant,
    sampled_at: Instant,
    /// What the last log line reported.
    told: (f64, Reasons),
}

/// What admission control allows a feeder now, and why not more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmissionStatus {
    /// How many tasks may run.
    pub allowed: u32,
    /// The allowed share of the slots, before rounding.
    pub factor: f64,
    /// Why it is not all of the slots.
    pub reasons: Reasons,
    /// Used memory as a share of the limit that applies; `None` if it cannot be read.
    pub memory_usage: Option<f64>,
}

impl Controller {
    /// A controller that reads the memory of this machine.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a setting is out of bounds.
    pub fn new(config: AdmissionConfig) -> Result<Self> {
        let reader = MemoryReader::new(config.memory_limit);
        Self::with_reader(config, reader)
    }

    /// A controller that reads memory from the files below a folder, for tests.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a setting is out of bounds.
    pub fn reading_below(config: AdmissionConfig, root: impl Into<PathBuf>) -> Result<Self> {
        let reader = MemoryReader::below(root, config.memory_limit);
        Self::with_reader(config, reader)
    }

    fn with_reader(config: AdmissionConfig, reader: MemoryReader) -> Result<Self> {
        config.check()?;
        let state = State {
            admission: Admission::new(config.memory_high),
            feeders: Vec::new(),
            memory: None,
            window_began: Instant::now(),
            sampled_at: Instant::now(),
            told: (1.0, Reasons::default()),
        };
        let inner = Inner {
            is_starting: AtomicBool::new(config.is_on),
            config,
            reader,
            kinds: RwLock::default(),
            state: Mutex::new(state),
            wanted: Notify::new(),
            lines: Quota::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes a sample now and sets how many slots each feeder may use. The sampler of a worker calls this
    /// regularly.
    pub fn sample(&self) {
        let memory = self.inner.reader.read();
        let mut state = self.lock();
        let passed = state.sampled_at.elapsed();
        (state.memory, state.sampled_at) = (memory, Instant::now());
        let is_slow = self.is_slow(&mut state);
        state.feeders.retain(|feeder| !feeder.is_gone());
        let mut seen = Seen { memory, is_slow, passed, ..Seen::default() };
        for load in state.feeders.iter().filter_map(Feeder::load) {
            seen.slots = seen.slots.saturating_add(load.slots);
            seen.in_flight = seen.in_flight.saturating_add(load.in_use);
            seen.ended = seen.ended.saturating_add(load.ended);
            seen.busiest = Some(busier(seen.busiest, (load.in_use, load.slots)));
        }
        if self.inner.config.is_on {
            state.admission.sample(&seen);
            self.inner.is_starting.store(state.admission.is_starting(), Ordering::Relaxed);
        }
        for feeder in &state.feeders {
            self.set_limit(&state, feeder);
        }
        self.tell(&mut state, seen.slots);
    }

    /// What a feeder with this many slots may use now.
    pub fn status(&self, slots: u32) -> AdmissionStatus {
        let state = self.lock();
        let memory_usage = state.memory.map(MemorySample::usage);
        if !self.inner.config.is_on {
            return AdmissionStatus {
                allowed: slots,
                factor: 1.0,
                reasons: Reasons::default(),
                memory_usage,
            };
        }
        AdmissionStatus {
            allowed: state.admission.allowed(slots),
            factor: state.admission.factor(slots),
            reasons: state.admission.reasons(slots),
            memory_usage,
        }
    }

    /// Memory at the last sample, with the limit that applies; `None` if it cannot be read.
    pub fn memory(&self) -> Option<MemorySample> {
        self.lock().memory
    }

    /// Whether it limits tasks, or only reports memory.
    pub fn is_on(&self) -> bool {
        self.inner.config.is_on
    }

    /// Adds a feeder, whose limit it sets from now on.
    pub(crate) fn attach(&self, feeder: Feeder) {
        self.lock().feeders.push(feeder);
        // The first sample must see the process before its tasks start.
        self.sample();
    }

    /// The slots of a feeder have changed.
    pub(crate) fn slots_changed(&self, feeder: &Feeder) {
        self.set_limit(&self.lock(), feeder);
    }

    /// Measures how long tasks of these kinds take, if they have a threshold. A worker calls this for its
    /// kinds.
    pub fn watch(&self, kinds: &[Name]) {
        let mut watched = self.inner.kinds.write().unwrap_or_else(PoisonError::into_inner);
        for kind in kinds {
            if let Some(threshold) = self.inner.config.threshold_of(kind) {
                watched.entry(kind.clone()).or_insert_with(|| Watched { latency: Latency::new(), threshold });
            }
        }
    }

    /// Whether any kind has a latency threshold.
    pub fn watches_latency(&self) -> bool {
        let config = &self.inner.config;
        config.latency_threshold.is_some() || !config.kind_latency_thresholds.is_empty()
    }

    /// Records how long a task took; ignores kinds without a threshold.
    pub fn note(&self, kind: &Name, took: Duration) {
        if let Some(watched) = self.inner.kinds.read().unwrap_or_else(PoisonError::into_inner).get(kind) {
            watched.latency.note(took);
        }
    }

    /// A feeder has work and may not start it. Cheap, and takes no lock: only the slow start is worth an
    /// immediate sample.
    pub(crate) fn held_up(&self) {
        if self.inner.is_starting.load(Ordering::Relaxed) {
            self.inner.wanted.notify_one();
        }
    }

    /// How long ago the last sample was taken.
    fn sampled_ago(&self) -> Duration {
        self.lock().sampled_at.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under our lock, so that an older limit never replaces a newer one. A pool calls none of this code
    /// under its own lock.
    fn set_limit(&self, state: &State, feeder: &Feeder) {
        if let Some(load) = feeder.load() {
            let limit =
                if self.inner.config.is_on { state.admission.allowed(load.slots) } else { load.slots };
            feeder.allow(limit);
        }
    }

    /// Whether the p99 of a kind is above its threshold. Also starts the next window when it is due.
    fn is_slow(&self, state: &mut State) -> bool {
        let kinds = self.inner.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let is_over = state.window_began.elapsed() >= latency::WINDOW;
        if is_over {
            state.window_began = Instant::now();
        }
        let mut is_slow = false;
        for watched in kinds.values() {
            is_slow |= watched.latency.p99().is_some_and(|p99| p99 > watched.threshold);
            if is_over {
                watched.latency.turn();
            }
        }
        is_slow
    }

    /// Logs one line per change, bounded in number. The steps of a slow start without pressure are not
    /// logged.
    fn tell(&self, state: &mut State, slots: u32) {
        let (factor, reasons) = if self.inner.config.is_on {
            (state.admission.factor(slots), state.admission.reasons(slots))
        } else {
            (1.0, Reasons::default())
        };
        let is_start = reasons == Reasons { start: true, ..Reasons::default() };
        let was_pressed = !state.told.1.is_empty();
        if (factor, reasons) == state.told || slots == 0 || is_start {
            return;
        }
        state.told = (factor, reasons);
        if reasons.is_empty() && !was_pressed {
            return;
        }
        match self.inner.lines.event(Instant::now()) {
            Line::None => {}
            line => {
                if let Line::OwnAfter(more) = line {
                    tracing::warn!(more, "changes of admission in the last minute, beyond those logged");
                }
                let usage = state.memory.map_or(0.0, MemorySample::usage);
                tracing::warn!(
                    allowed = state.admission.allowed(slots), slots, factor = round(factor), reason = %reasons,
                    memory_usage = round(usage), "admission changed what may run"
                );
            }
        }
    }
}

/// The feeder of the two that uses a greater share of its slots; each as slots in use and slots in total.
fn busier(known: Option<(u32, u32)>, other: (u32, u32)) -> (u32, u32) {
    let share = |(in_use, slots): (u32, u32)| f64::from(in_use) / f64::from(slots.max(1));
    known.filter(|known| share(*known) >= share(other)).unwrap_or(other)
}

/// Rounded to three digits, for log lines.
fn round(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
