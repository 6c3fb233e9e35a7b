//! Which worker ended the last step of a workflow, so that the next step can go to it. The list is bounded,
//! and an entry expires after a moment: only a step that follows at once profits.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use windlass_core::{Name, WorkerId, affinity::LastRan};

/// Most entries.
const PREFERENCES_MAX: usize = 1_024;
/// How long the next step may take to become ready.
const PREFERENCE_AGE: Duration = Duration::from_secs(1);

/// Whether the next step of a workflow prefers the worker that ran the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Affinity {
    /// It does, if that worker has a free slot; no step waits for it.
    #[default]
    On,
    /// It does not. To measure what the preference costs.
    Off,
}

/// The workers that ended the last steps.
pub(in crate::grpc) struct Preferences {
    affinity: Affinity,
    ends: Mutex<Ends>,
}

#[derive(Default)]
struct Ends {
    /// Oldest first. An entry is ignored if its workflow has a newer one, or if the next step was handed out.
    order: VecDeque<(Name, u64)>,
    of: HashMap<Name, End>,
    number: u64,
}

struct End {
    worker: WorkerId,
    number: u64,
    since: Instant,
}

impl Preferences {
    pub(in crate::grpc) fn new(affinity: Affinity) -> Self {
        Self { affinity, ends: Mutex::default() }
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a worker ends steps of these workflows.
    pub(in crate::grpc) fn note<'a>(
        &self,
        workflows: impl Iterator<Item = &'a Name>,
        worker: WorkerId,
        now: Instant,
    ) {
        if self.affinity == Affinity::Off {
            return;
        }
        let mut ends = self.ends();
        for workflow in workflows {
            ends.note(workflow, worker, now);
        }
    }

    /// Records that steps of these workflows were handed out.
    pub(in crate::grpc) fn met<'a>(&self, workflows: impl Iterator<Item = &'a Name>) {
        let mut ends = self.ends();
        for workflow in workflows {
            ends.of.remove(workflow);
        }
    }

    /// How many workflows prefer each worker.
    pub(in crate::grpc) fn counts(&self, now: Instant) -> HashMap<WorkerId, u32> {
        let mut ends = self.ends();
        ends.forget_old(now);
        let mut counts = HashMap::new();
        for end in ends.of.values() {
            *counts.entry(end.worker).or_insert(0) += 1;
        }
        counts
    }
}

impl LastRan for Preferences {
    fn worker(&self, workflow: &Name) -> Option<WorkerId> {
        self.ends().of.get(workflow).map(|end| end.worker)
    }
}

impl Ends {
    fn note(&mut self, workflow: &Name, worker: WorkerId, now: Instant) {
        while self.order.len() >= PREFERENCES_MAX {
            self.drop_oldest();
        }
        self.number += 1;
        let number = self.number;
        self.order.push_back((workflow.clone(), number));
        self.of.insert(workflow.clone(), End { worker, number, since: now });
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((workflow, number)) = self.order.front() {
            let known = self.of.get(workflow).filter(|known| known.number == *number);
            if known.is_some_and(|known| now.duration_since(known.since) < PREFERENCE_AGE) {
                break;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((workflow, number)) = self.order.pop_front()
            && self.of.get(&workflow).is_some_and(|known| known.number == number)
        {
            self.of.remove(&workflow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: impl std::fmt::Display) -> Name {
        Name::new("workflow", text.to_string()).unwrap()
    }

    #[test]
    fn a_worker_is_preferred_until_the_next_step_is_handed_out() {
        let (preferences, now) = (Preferences::new(Affinity::On), Instant::now());
        preferences.note([name("a"), name("b")].iter(), WorkerId(1), now);
        preferences.note([name("a")].iter(), WorkerId(2), now);
        assert_eq!(preferences.worker(&name("b")), Some(WorkerId(1)));
        assert_eq!(preferences.worker(&name("a")), Some(WorkerId(2)));
        assert_eq!(preferences.counts(now)[&WorkerId(2)], 1);
        preferences.met([name("a")].iter());
        assert_eq!(preferences.worker(&name("a")), None);
    }

    #[test]
    fn preferences_expire_and_are_bounded() {
        let (preferences, now) = (Preferences::new(Affinity::On), Instant::now());
        preferences.note([name("old")].iter(), WorkerId(1), now);
        preferences.note([name("new")].iter(), WorkerId(1), now + PREFERENCE_AGE);
        assert_eq!(preferences.counts(now + PREFERENCE_AGE)[&WorkerId(1)], 1);
        assert_eq!(preferences.worker(&name("old")), None);
        let sizes = || {
            let ends = preferences.ends();
            (ends.of.len(), ends.order.len())
        };
        for n in 0..3 * PREFERENCES_MAX {
            preferences.note([name(n)].iter(), WorkerId(1), now);
        }
        assert_eq!(sizes(), (PREFERENCES_MAX, PREFERENCES_MAX));
        // The same workflow many times needs no more room either.
        for _ in 0..3 * PREFERENCES_MAX {
            preferences.note([name("same")].iter(), WorkerId(1), now);
        }
        assert_eq!(sizes(), (1, PREFERENCES_MAX));
    }

    #[test]
    fn without_affinity_nothing_is_noted() {
        let (preferences, now) = (Preferences::new(Affinity::Off), Instant::now());
        preferences.note([name("a")].iter(), WorkerId(1), now);
        assert_eq!(preferences.worker(&name("a")), None);
    }
}
