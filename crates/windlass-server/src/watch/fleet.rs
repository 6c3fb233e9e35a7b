//! Adds up what the workers say they have done: the counts of a whole fleet, which only rise.

use std::collections::{BTreeMap, HashMap};

use windlass_core::{Counts, Name, WorkerCounts, WorkerId, WorkerRecord};

/// Most of anything that a worker is believed to have done between two looks. An absurd figure must not use up
/// the range of the sums.
const MORE_MAX: u64 = 1 << 40;

/// What all workers have done since the first look.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    /// What each worker had done at the last look. `None`: it was there at the first look and had counted
    /// nothing yet, perhaps because its store had restarted; its first counts are from before the look.
    seen: HashMap<WorkerId, Option<WorkerCounts>>,
    has_begun: bool,
    queues: BTreeMap<Name, Counts>,
    total: Counts,
}

impl Fleet {
    /// Adds what the workers have done since the last look.
    pub(super) fn note(&mut self, workers: &[WorkerRecord]) {
        let mut seen = HashMap::with_capacity(workers.len());
        for worker in workers {
            let counts = &worker.counts;
            let known = match self.seen.remove(&worker.id) {
                Some(Some(before)) => {
                    self.add(&counts.since(&before));
                    Some(counts.clone())
                }
                None if self.has_begun => {
                    self.add(counts);
                    Some(counts.clone())
                }
                Some(None) | None => (!counts.is_zero()).then(|| counts.clone()),
            };
            seen.insert(worker.id, known);
        }
        self.seen = seen;
        self.has_begun = true;
    }

    /// What was done in a queue.
    pub(super) fn of(&self, queue: &Name) -> Counts {
        self.queues.get(queue).copied().unwrap_or_default()
    }

    /// What was done in all queues.
    pub(super) fn total(&self) -> Counts {
        self.total
    }

    fn add(&mut self, more: &WorkerCounts) {
        self.total += more.total().at_most(MORE_MAX);
        for (queue, counts) in &more.queues {
            if !counts.is_zero() {
                *self.queues.entry(queue.clone()).or_default() += counts.at_most(MORE_MAX);
            }
        }
    }

    /// Forgets queues that no longer exist.
    pub(super) fn keep(&mut self, exists: impl Fn(&Name) -> bool) {
        self.queues.retain(|queue, _| exists(queue));
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::Timestamp;

    use super::*;

    fn mail() -> Name {
        Name::new("queue", "mail").unwrap()
    }

    fn worker(id: i64, done: u64) -> WorkerRecord {
        let mut counts = WorkerCounts::default();
        counts.of(&mail()).done = done;
        let at = Timestamp::from_ms(0);
        WorkerRecord {
            id: WorkerId(id),
            host: String::new(),
            pid: 1,
            version: String::new(),
            kinds: Vec::new(),
            queues: Vec::new(),
            slots: 1,
            in_flight: 0,
            available: 1,
            draining: false,
            memory_usage: 0.0,
            factor: 1.0,
            reason: String::new(),
            counts,
            live: true,
            ended: false,
            registered_at: at,
            renewed_at: at,
        }
    }

    /// What the fleet has done after each look, where a look is a list of workers and what they say.
    fn done(looks: &[&[(i64, u64)]]) -> Vec<u64> {
        let mut fleet = Fleet::default();
        let look = |look: &&[(i64, u64)]| {
            let workers: Vec<_> = look.iter().map(|(id, done)| worker(*id, *done)).collect();
            fleet.note(&workers);
            assert_eq!(fleet.of(&mail()).done, fleet.total().done);
            fleet.total().done
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn work_from_before_the_first_look_does_not_count() {
        assert_eq!(done(&[&[(1, 100)], &[(1, 130)], &[(1, 130)]]), [0, 30, 30]);
        assert_eq!(done(&[&[(1, 0)], &[(1, 1_000)], &[(1, 1_005)]]), [0, 0, 5], "its store had restarted");
    }

    #[test]
    fn a_worker_that_came_later_counts_from_its_start() {
        assert_eq!(done(&[&[(1, 100)], &[(1, 110), (2, 7)], &[(2, 9)]]), [0, 17, 19]);
        assert_eq!(done(&[&[], &[(1, 5)], &[(1, 6)]]), [0, 5, 6]);
    }

    #[test]
    fn a_worker_that_counts_less_has_begun_anew() {
        assert_eq!(done(&[&[(1, 100)], &[(1, 4)], &[(1, 6)]]), [0, 4, 6]);
    }
}
