//! The settings of a worker, with their defaults and bounds.

use std::time::Duration;

pub use windlass_core::worker::SLOTS_MAX;
use windlass_core::{Error, Name, Result, store::Retention, worker::check_slots};

use crate::{admission::AdmissionConfig, inside::home::Home};

/// Most tasks that one claim takes, however short they are.
pub const CLAIM_MAX: u32 = 1_000;

/// How many tasks a claim asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimBatch {
    /// Starts at this number and grows if tasks are short: to twice the number that finished since the last
    /// claim.
    From(u32),
    /// Never more than this number, because the user set it.
    AtMost(u32),
}

impl ClaimBatch {
    /// How many tasks to ask for, given the number that finished since the last claim. Free slots are a
    /// further bound.
    pub fn size(self, finished_since_last: u32) -> u32 {
        match self {
            Self::From(start) => start.max(finished_since_last.saturating_mul(2)).min(CLAIM_MAX),
            Self::AtMost(most) => most,
        }
    }
}

/// Whether metrics are collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metrics {
    /// Yes.
    #[default]
    On,
    /// No: only the counters that a worker itself needs.
    Off,
}

/// The settings of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerConfig {
    /// How many tasks run at once: a strict limit.
    pub slots: u32,
    /// Queues to serve; empty means all.
    pub queues: Vec<Name>,
    /// How many tasks a claim asks for.
    pub claim_batch: ClaimBatch,
    /// Shortest pause between two polls of an empty store.
    pub poll_interval: Duration,
    /// Longest pause between two polls of an empty store: the most that a lost hint costs.
    pub poll_interval_max: Duration,
    /// How long a renewal is valid: without another one the store then takes the worker for dead.
    pub lease_ttl: Duration,
    /// How often the lease is renewed; at most a third of `lease_ttl`.
    pub heartbeat: Duration,
    /// How often the worker looks for dead workers.
    pub sweep: Duration,
    /// How long a stop waits for running tasks before it hands them back.
    pub drain_timeout: Duration,
    /// How long a cancelled handler may continue before it is dropped.
    pub cancel_grace: Duration,
    /// How long ended tasks are kept.
    pub retention: Retention,
    /// Whether events of tasks are counted for metrics.
    pub metrics: Metrics,
    /// When fewer tasks may run than there are slots.
    pub admission: AdmissionConfig,
    /// Where the worker's loops run.
    #[doc(hidden)]
    pub home: Home,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            slots: 1_000,
            queues: Vec::new(),
            claim_batch: ClaimBatch::From(50),
            poll_interval: Duration::from_millis(100),
            poll_interval_max: Duration::from_secs(1),
            lease_ttl: Duration::from_secs(10),
            heartbeat: Duration::from_secs(2),
            sweep: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            retention: Retention::default(),
            metrics: Metrics::On,
            admission: AdmissionConfig::default(),
            home: Home::default(),
        }
    }
}

impl WorkerConfig {
    /// Refuses a bad value with the name of the setting.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self) -> Result<()> {
        check_slots(self.slots)?;
        self.admission.check()?;
        if let ClaimBatch::From(n) | ClaimBatch::AtMost(n) = self.claim_batch
            && (n == 0 || n > 10_000)
        {
            return Err(Error::invalid(format!("claim_batch_size must be 1 to 10000, not {n}")));
        }
        if self.poll_interval.is_zero() || self.poll_interval > self.poll_interval_max {
            return Err(Error::invalid("poll_interval_ms must be above 0 and at most poll_interval_max_ms"));
        }
        if self.heartbeat.is_zero() || self.heartbeat * 3 > self.lease_ttl {
            return Err(Error::invalid(format!(
                "heartbeat_ms ({}) must be above 0 and at most a third of lease_ttl_ms ({})",
                self.heartbeat.as_millis(),
                self.lease_ttl.as_millis()
            )));
        }
        if self.sweep.is_zero() {
            return Err(Error::invalid("sweep_ms must be above 0"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_size_grows_with_short_tasks_up_to_an_explicit_size() {
        assert_eq!(ClaimBatch::From(50).size(0), 50);
        assert_eq!(ClaimBatch::From(50).size(20), 50);
        assert_eq!(ClaimBatch::From(50).size(200), 400);
        assert_eq!(ClaimBatch::From(50).size(5_000), CLAIM_MAX);
        assert_eq!(ClaimBatch::AtMost(10).size(5_000), 10);
    }

    #[test]
    fn nonsense_is_refused_with_the_name_of_the_setting() {
        let base = WorkerConfig::default;
        let second = Duration::from_secs(1);
        let with = |admission| WorkerConfig { admission, ..base() };
        for (config, name) in [
            (WorkerConfig { slots: 0, ..base() }, "slots"),
            (WorkerConfig { slots: 200_000, ..base() }, "slots"),
            (WorkerConfig { claim_batch: ClaimBatch::AtMost(0), ..base() }, "claim_batch_size"),
            (WorkerConfig { poll_interval: 2 * second, ..base() }, "poll_interval_ms"),
            (WorkerConfig { heartbeat: 4 * second, ..base() }, "heartbeat_ms"),
            (WorkerConfig { sweep: Duration::ZERO, ..base() }, "sweep_ms"),
            (with(AdmissionConfig { memory_high: 1.5, ..AdmissionConfig::default() }), "memory_high"),
            (with(AdmissionConfig { memory_limit: Some(0), ..AdmissionConfig::default() }), "memory_limit"),
            (
                with(AdmissionConfig {
                    latency_threshold: Some(Duration::ZERO),
                    ..AdmissionConfig::default()
                }),
                "latency_threshold_ms",
            ),
        ] {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(base().check().is_ok());
    }
}
