//! How many attempts of each job have ended since the last reading.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use windlass_core::Name;

/// Most jobs that are counted separately between two readings; the others only as a sum.
const JOBS_MAX: usize = 10_000;

/// Tallies by job. One lock per batch of settlements, none per task.
#[derive(Debug, Default)]
pub(super) struct JobTallies(Mutex<Tallies>);

#[derive(Debug, Default)]
struct Tallies {
    jobs: HashMap<Name, u64>,
    rest: u64,
}

impl JobTallies {
    /// Counts one end for each name.
    pub(super) fn note<'a>(&self, ends: impl Iterator<Item = &'a Name>) {
        let mut ends = ends.peekable();
        if ends.peek().is_none() {
            return;
        }
        let mut tallies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for job in ends {
            if let Some(tally) = tallies.jobs.get_mut(job) {
                *tally += 1;
            } else if tallies.jobs.len() < JOBS_MAX {
                tallies.jobs.insert(job.clone(), 1);
            } else {
                tallies.rest += 1;
            }
        }
    }

    /// The counts by job, and the sum of the other jobs; resets both.
    pub(super) fn take(&self) -> (Vec<(Name, [u64; 1])>, [u64; 1]) {
        let taken = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (taken.jobs.into_iter().map(|(job, tally)| (job, [tally])).collect(), [taken.rest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_beyond_the_bound_are_summed() {
        let names: Vec<Name> =
            (0..JOBS_MAX + 5).map(|n| Name::new("job", format!("j{n}")).unwrap()).collect();
        let tallies = JobTallies::default();
        tallies.note(names.iter().chain(&names));
        let (jobs, rest) = tallies.take();
        assert_eq!((jobs.len(), rest), (JOBS_MAX, [10]));
        assert!(jobs.iter().all(|(_, tally)| *tally == [2]));
        assert_eq!(tallies.take(), (Vec::new(), [0]));
    }
}
