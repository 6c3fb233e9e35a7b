//! What a worker has done since it registered, by queue. Each renewal carries it, so that the rates of a whole
//! fleet cost no query of their own.

use std::{collections::BTreeMap, ops::AddAssign};

use serde::{Deserialize, Serialize};

use crate::{name::Name, settlement::Settlement};

/// Most queues that a worker counts apart. What it does for further queues is counted in [`WorkerCounts::rest`].
pub const COUNTED_QUEUES_MAX: usize = 32;

/// Ends of attempts that the store acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Attempts that started.
    pub started: u64,
    /// Attempts that ended in success.
    pub done: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Attempts that failed for good.
    pub dead: u64,
    /// Attempts that ended with a cancellation.
    pub cancelled: u64,
    /// Attempts that were snoozed or handed back: not spent.
    pub returned: u64,
    /// How long all attempts took, from claim to acknowledgement.
    pub busy_ms: u64,
}

impl Counts {
    /// Attempts that failed.
    pub fn failed(&self) -> u64 {
        self.retried.saturating_add(self.dead)
    }

    /// Tasks that ended.
    pub fn left(&self) -> u64 {
        self.done.saturating_add(self.dead).saturating_add(self.cancelled)
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Counts the end of an attempt that took this long.
    pub fn ended(&mut self, settlement: &Settlement, took_ms: u64) {
        let figure = match settlement {
            Settlement::Done { .. } => &mut self.done,
            Settlement::Retry { .. } => &mut self.retried,
            Settlement::Dead { .. } => &mut self.dead,
            Settlement::Cancelled { .. } => &mut self.cancelled,
            Settlement::Snooze { .. } | Settlement::Release => &mut self.returned,
        };
        *figure = figure.saturating_add(1);
        self.busy_ms = self.busy_ms.saturating_add(took_ms);
    }

    /// What was counted since an earlier report of the same worker. A worker that counts less than before has
    /// begun anew: everything that it counts is new.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (now, then) = (self.figures(), before.figures());
        if now.iter().zip(then).any(|(now, then)| *now < then) {
            return *self;
        }
        let mut more = now;
        for (figure, then) in more.iter_mut().zip(then) {
            *figure -= then;
        }
        Self::of(more)
    }

    /// The same with each figure cut to `most`.
    #[must_use]
    pub fn at_most(&self, most: u64) -> Self {
        Self::of(self.figures().map(|figure| figure.min(most)))
    }

    fn figures(&self) -> [u64; 7] {
        let Self { started, done, retried, dead, cancelled, returned, busy_ms } = *self;
        [started, done, retried, dead, cancelled, returned, busy_ms]
    }

    fn of([started, done, retried, dead, cancelled, returned, busy_ms]: [u64; 7]) -> Self {
        Self { started, done, retried, dead, cancelled, returned, busy_ms }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let mut sum = self.figures();
        for (figure, more) in sum.iter_mut().zip(other.figures()) {
            *figure = figure.saturating_add(more);
        }
        *self = Self::of(sum);
    }
}

/// The counts of one worker since it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// By queue; at most [`COUNTED_QUEUES_MAX`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<Name, Counts>,
    /// Everything else.
    #[serde(default, skip_serializing_if = "Counts::is_zero")]
    pub rest: Counts,
}

impl WorkerCounts {
    /// The place where attempts of a queue are counted.
    pub fn of(&mut self, queue: &Name) -> &mut Counts {
        if !self.queues.contains_key(queue) && self.queues.len() >= COUNTED_QUEUES_MAX {
            return &mut self.rest;
        }
        self.queues.entry(queue.clone()).or_default()
    }

    /// Everything together.
    pub fn total(&self) -> Counts {
        let mut total = self.rest;
        for counts in self.queues.values() {
            total += *counts;
        }
        total
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        self.total().is_zero()
    }

    /// What was counted since an earlier report of the same worker.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let none = Counts::default();
        let more = |(queue, counts): (&Name, &Counts)| {
            (queue.clone(), counts.since(before.queues.get(queue).unwrap_or(&none)))
        };
        Self { queues: self.queues.iter().map(more).collect(), rest: self.rest.since(&before.rest) }
    }

    /// The text that a store keeps: compact JSON, empty if nothing was counted.
    pub fn to_stored(&self) -> String {
        if self.is_zero() {
            return String::new();
        }
        let queues = self.queues.iter().map(|(queue, counts)| (queue.as_str(), counts.figures()));
        let stored: (Vec<_>, _) = (queues.collect(), self.rest.figures());
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads that text. One that cannot be read, of a newer version for instance, counts nothing.
    pub fn from_stored(text: &str) -> Self {
        let Ok((queues, rest)) = serde_json::from_str::<(Vec<(Name, [u64; 7])>, [u64; 7])>(text) else {
            return Self::default();
        };
        let queues = queues.into_iter().map(|(queue, figures)| (queue, Counts::of(figures)));
        Self { queues: queues.collect(), rest: Counts::of(rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: impl AsRef<str>) -> Name {
        Name::new("queue", text).unwrap()
    }

    #[test]
    fn each_settlement_is_counted_once() {
        let due_at = crate::Timestamp::from_ms(0);
        let mut counts = WorkerCounts::default();
        let queue = counts.of(&name("mail"));
        queue.started += 6;
        for settlement in [
            Settlement::Done { output: None, note: None },
            Settlement::Retry { due_at, error: String::new() },
            Settlement::Dead { error: String::new() },
            Settlement::Cancelled { reason: String::new() },
            Settlement::Snooze { due_at },
            Settlement::Release,
        ] {
            queue.ended(&settlement, 10);
        }
        assert_eq!(queue.figures(), [6, 1, 1, 1, 1, 2, 60]);
        assert_eq!((queue.failed(), queue.left()), (2, 3));
    }

    #[test]
    fn counts_survive_a_store() {
        let mut counts = WorkerCounts::default();
        assert_eq!(counts.to_stored(), "");
        *counts.of(&name("a \"quoted\" queue")) = Counts { done: 7, busy_ms: u64::MAX, ..Counts::default() };
        counts.rest.started = 1;
        assert_eq!(WorkerCounts::from_stored(&counts.to_stored()), counts);
        for unreadable in ["", "{}", "[[[1]]]", "[[[\"q\",[1,2]]],[0]]"] {
            assert_eq!(WorkerCounts::from_stored(unreadable), WorkerCounts::default(), "{unreadable}");
        }
    }

    #[test]
    fn further_queues_are_counted_together() {
        let mut counts = WorkerCounts::default();
        for number in 0..COUNTED_QUEUES_MAX + 5 {
            counts.of(&name(format!("q{number}"))).done += 1;
        }
        assert_eq!((counts.queues.len(), counts.rest.done), (COUNTED_QUEUES_MAX, 5));
        assert_eq!(counts.total().done, (COUNTED_QUEUES_MAX + 5) as u64);
    }

    #[test]
    fn a_worker_that_counts_less_has_begun_anew() {
        let before = Counts { started: 10, done: 9, ..Counts::default() };
        let later = Counts { started: 12, done: 10, ..Counts::default() };
        assert_eq!(later.since(&before), Counts { started: 2, done: 1, ..Counts::default() });
        let anew = Counts { started: 3, ..Counts::default() };
        assert_eq!(anew.since(&before), anew);
    }
}
