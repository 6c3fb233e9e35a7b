//! When a process audits the whole store for broken promises.
//!
//! An audit reads the whole store, and every process finds the same. So the processes of a store share the
//! work without communication: each knows how many there are, and waits that many times longer. The leader
//! alone must not do it, because it may be a process that is never scraped.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::watch, time::Instant};
use windlass_core::store::SharedStore;

use super::{
    meters::{Duty, Meters},
    names,
    text::Text,
};

/// Audits take at most one part in so many of the time.
const SHARE: u32 = 100;

/// Findings and time of the last audit.
#[derive(Debug)]
pub(super) struct Audit {
    last: watch::Sender<Option<(usize, SystemTime)>>,
}

impl Default for Audit {
    fn default() -> Self {
        Self { last: watch::Sender::new(None) }
    }
}

/// How many workers share the audits, and the number of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Workers with a live lease.
    pub(super) live: u64,
    /// A number that identifies this worker among them.
    pub(super) own: u64,
}

impl Turn {
    fn live(self) -> u32 {
        u32::try_from(self.live).unwrap_or(u32::MAX).max(1)
    }

    /// How long the first audit waits: one of the workers begins at once, each other one turn later.
    fn first(self, every: Duration) -> Duration {
        let live = self.live();
        every.saturating_mul((self.own % u64::from(live)) as u32)
    }

    /// How long the next audit waits, after one that took `took`.
    fn next(self, every: Duration, took: Duration) -> Duration {
        every.saturating_mul(self.live()).max(took.saturating_mul(SHARE))
    }
}

impl Audit {
    /// Audits until it is dropped. `turn` returns the current participants.
    pub(super) async fn keep(
        &self,
        store: &SharedStore,
        meters: &Meters,
        every: Duration,
        turn: impl Fn() -> Turn,
    ) -> Infallible {
        tokio::time::sleep(turn().first(every)).await;
        loop {
            let started = Instant::now();
            let found = store.audit().await;
            meters.duty(Duty::Audit, &found);
            match found {
                Ok(findings) => {
                    if let Some(first) = findings.first() {
                        tracing::error!(found = findings.len(), promise = first.promise, task = ?first.task,
                            "the audit found a broken promise; `windlass doctor --audit` names all");
                    }
                    self.last.send_replace(Some((findings.len(), SystemTime::now())));
                }
                Err(error) => tracing::warn!(%error, "the audit failed; it is tried again"),
            }
            tokio::time::sleep(turn().next(every, started.elapsed())).await;
        }
    }

    /// How many broken promises the last audit found, and when it ended.
    pub(super) fn last(&self) -> Option<(usize, SystemTime)> {
        *self.last.borrow()
    }

    pub(super) fn write(&self, text: &mut Text) {
        let last = self.last();
        let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        text.one(&names::AUDIT_TIME, last.map_or(0.0, |(_, at)| since_1970(at)));
        if let Some((findings, _)) = last {
            text.one(&names::AUDIT_FINDINGS, findings as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_audits_as_often_as_one_process_would() {
        let (every, took) = (Duration::from_mins(10), Duration::from_secs(1));
        let alone = Turn { live: 1, own: 7 };
        assert_eq!((alone.first(every), alone.next(every, took)), (Duration::ZERO, every));
        let starts: Vec<_> = (20..24).map(|own| Turn { live: 4, own }.first(every) / 600).collect();
        assert_eq!(starts, [0, 1, 2, 3].map(Duration::from_secs), "one turn after another");
        assert_eq!(Turn { live: 4, own: 21 }.next(every, took), 4 * every);
    }

    #[test]
    fn without_workers_one_is_assumed_and_long_audits_wait_longer() {
        let (every, none) = (Duration::from_mins(10), Turn { live: 0, own: 3 });
        assert_eq!(none.first(every), Duration::ZERO);
        assert_eq!(none.next(every, Duration::from_mins(1)), Duration::from_mins(100));
    }
}
