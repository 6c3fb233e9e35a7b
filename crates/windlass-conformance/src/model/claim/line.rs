//! The one thing about the ready line that the rules leave open (docs/gates.md): the order between tasks of
//! different jobs that one call released.

use windlass_core::{Name, TaskId};

/// Where a task of a job stands in the ready line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stand<'a> {
    pub release: u64,
    pub priority: i32,
    pub is_suspect: bool,
    pub job: &'a Name,
}

impl Stand<'_> {
    /// Whether only the order of jobs may tell the two apart.
    fn is_beside(&self, other: &Self) -> bool {
        (self.release, self.priority, self.is_suspect) == (other.release, other.priority, other.is_suspect)
    }
}

/// The line with the tasks that a store took as far in front, and in the order, as the rules allow. The tasks
/// of each job keep their order. A task without a job has no stand, and keeps its place.
pub(super) fn like<'a>(
    line: &[TaskId],
    taken: &[TaskId],
    stand: impl Fn(TaskId) -> Option<Stand<'a>>,
) -> Vec<TaskId> {
    let are_beside = |one: &TaskId, other: &TaskId| {
        stand(*one).zip(stand(*other)).is_some_and(|(one, other)| one.is_beside(&other))
    };
    let job = |id: &TaskId| stand(*id).map(|stand| stand.job);
    let mut ordered = Vec::with_capacity(line.len());
    for run in line.chunk_by(are_beside) {
        let mut left = run.to_vec();
        for id in taken.iter().filter(|id| run.contains(id)) {
            let Some(place) = left.iter().position(|other| other == id) else { continue };
            // Before it go the tasks of its job that stand before it.
            let goes = |at: usize, other: &TaskId| at <= place && job(other) == job(id);
            let before: Vec<TaskId> =
                left.iter().enumerate().filter(|(at, other)| goes(*at, other)).map(|(_, id)| *id).collect();
            left.retain(|other| !before.contains(other));
            ordered.extend(before);
        }
        ordered.extend(left);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks 1, 2 of job a and 3, 4 of job b, released together; 5 of job a by a later call; 6 without a job.
    fn stand_of<'a>(a: &'a Name, b: &'a Name) -> impl Fn(TaskId) -> Option<Stand<'a>> {
        move |id| {
            let stand = |release, job| Some(Stand { release, priority: 0, is_suspect: false, job });
            match id.raw() {
                1 | 2 => stand(1, a),
                3 | 4 => stand(1, b),
                5 => stand(2, a),
                _ => None,
            }
        }
    }

    fn like_of(line: [i64; 4], taken: &[i64]) -> Vec<i64> {
        let (a, b) = (Name::new("job", "a").unwrap(), Name::new("job", "b").unwrap());
        let ids = |raw: &[i64]| raw.iter().map(|raw| TaskId::from_raw(*raw)).collect::<Vec<_>>();
        let ordered = like(&ids(&line), &ids(taken), stand_of(&a, &b));
        ordered.into_iter().map(TaskId::raw).collect()
    }

    #[test]
    fn jobs_released_together_may_be_in_any_order() {
        assert_eq!(like_of([1, 2, 3, 4], &[3, 1]), [3, 1, 2, 4]);
        assert_eq!(like_of([1, 2, 3, 4], &[3, 4, 1, 2]), [3, 4, 1, 2]);
    }

    #[test]
    fn tasks_of_one_job_keep_their_order() {
        assert_eq!(like_of([1, 2, 3, 4], &[4, 3]), [3, 4, 1, 2]);
        assert_eq!(like_of([1, 2, 3, 4], &[2]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_later_release_stays_behind() {
        assert_eq!(like_of([3, 4, 5, 6], &[5]), [3, 4, 5, 6]);
    }

    #[test]
    fn a_task_without_a_job_keeps_its_place() {
        assert_eq!(like_of([1, 6, 3, 4], &[3, 1]), [1, 6, 3, 4]);
    }
}
