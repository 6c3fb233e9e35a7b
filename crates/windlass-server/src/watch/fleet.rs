//! Adds up what the workers say they have done: the counts of a whole fleet, which only rise.

use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// Live workers that have run tasks and counted none: of another language, or of an older version.
    silent: HashSet<WorkerId>,
    /// The newest worker of all looks. An older one that was not in the last list was in an earlier one: lists of
    /// ended workers are cut.
    newest: Option<WorkerId>,
    has_begun: bool,
    queues: BTreeMap<Name, Counts>,
    total: Counts,
}

impl Fleet {
    /// Adds what the workers have done since the last look.
    pub(super) fn note(&mut self, workers: &[WorkerRecord]) {
        let mut seen = HashMap::with_capacity(workers.len());
        let mut silent = HashSet::new();
        for worker in workers {
            let counts = &worker.counts;
            let runs = worker.in_flight > 0 || self.silent.contains(&worker.id);
            if worker.live && runs && counts.is_zero() {
                silent.insert(worker.id);
            }
            let known = match self.seen.remove(&worker.id) {
                Some(Some(before)) => {
                    self.add(&counts.since(&before));
                    Some(counts.clone())
                }
                None if self.newest.is_some_and(|newest| worker.id <= newest) => Some(counts.clone()),
                None if self.has_begun => {
                    self.add(counts);
                    Some(counts.clone())
                }
                Some(None) | None => (!counts.is_zero()).then(|| counts.clone()),
            };
            seen.insert(worker.id, known);
        }
        self.seen = seen;
        self.silent = silent;
        self.newest = self.newest.max(workers.iter().map(|worker| worker.id).max());
        self.has_begun = true;
    }

    /// Live workers that may do work which no count of its queue holds.
    pub(super) fn suspects<'a>(&self, workers: &'a [WorkerRecord]) -> Vec<Suspect<'a>> {
        let suspect = |worker: &'a WorkerRecord| {
            let is_silent = self.silent.contains(&worker.id);
            (worker.live && (is_silent || !worker.counts.rest.is_zero()))
                .then_some(Suspect { worker, is_silent })
        };
        workers.iter().filter_map(suspect).collect()
    }

    /// Whether a live worker runs tasks and counts none.
    pub(super) fn has_silent(&self) -> bool {
        !self.silent.is_empty()
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

/// A worker that may do work which no count of its queue holds.
pub(super) struct Suspect<'a> {
    worker: &'a WorkerRecord,
    is_silent: bool,
}

impl Suspect<'_> {
    /// Whether it may do such work of this queue and kind.
    pub(super) fn leaves_out(&self, queue: &Name, kind: &Name) -> bool {
        self.worker.serves(queue, kind) && (self.is_silent || !self.worker.counts.queues.contains_key(queue))
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
    fn an_ended_worker_that_comes_back_into_the_list_adds_nothing() {
        assert_eq!(done(&[&[(1, 100), (2, 5)], &[(2, 6)], &[(1, 100), (2, 7)]]), [0, 1, 2]);
        assert_eq!(done(&[&[(2, 5)], &[(2, 6), (3, 1)], &[(2, 6), (3, 1), (1, 100)]]), [0, 2, 2]);
    }

    #[test]
    fn an_absurd_count_does_not_end_the_counting() {
        let mut fleet = Fleet::default();
        fleet.note(&[]);
        for id in 1..100 {
            fleet.note(&[worker(id, u64::MAX)]);
        }
        let before = fleet.total().done;
        fleet.note(&[worker(100, 1)]);
        fleet.note(&[worker(100, 4)]);
        assert_eq!(fleet.total().done - before, 4);
        assert!(i64::try_from(before).is_ok());
    }

    /// Whether a worker may leave out work of the kind `send` in this queue.
    fn leaves_out(fleet: &Fleet, worker: &WorkerRecord, queue: &Name) -> bool {
        let kind = Name::new("kind", "send").unwrap();
        let worker = WorkerRecord { kinds: vec![kind.clone()], ..worker.clone() };
        fleet.suspects(&[worker]).iter().any(|suspect| suspect.leaves_out(queue, &kind))
    }

    #[test]
    fn a_worker_that_counts_nothing_while_it_runs_tasks_is_silent() {
        let mut fleet = Fleet::default();
        let with = |in_flight, done| WorkerRecord { in_flight, ..worker(1, done) };
        let mut looks = Vec::new();
        for (in_flight, done) in [(0, 0), (3, 0), (0, 0), (3, 1), (3, 1)] {
            let worker = with(in_flight, done);
            fleet.note(std::slice::from_ref(&worker));
            looks.push((fleet.has_silent(), leaves_out(&fleet, &worker, &mail())));
        }
        let (yes, no) = ((true, true), (false, false));
        assert_eq!(looks, [no, yes, yes, no, no]);
        fleet.note(&[with(3, 0)]);
        assert!(fleet.has_silent());
        fleet.note(&[WorkerRecord { live: false, ..with(3, 0) }]);
        assert!(!fleet.has_silent(), "it is gone");
    }

    #[test]
    fn a_queue_beyond_the_places_of_a_worker_is_not_counted() {
        let fleet = Fleet::default();
        let (mut worker, other) = (worker(1, 5), Name::new("queue", "other").unwrap());
        assert!(!leaves_out(&fleet, &worker, &other), "it has done nothing there");
        worker.counts.rest.done = 1;
        assert!(leaves_out(&fleet, &worker, &other) && !leaves_out(&fleet, &worker, &mail()));
        worker.queues = vec![mail()];
        assert!(!leaves_out(&fleet, &worker, &other), "it does not serve it");
    }

    #[test]
    fn a_worker_that_counts_less_has_begun_anew() {
        assert_eq!(done(&[&[(1, 100)], &[(1, 4)], &[(1, 6)]]), [0, 4, 6]);
    }
}
