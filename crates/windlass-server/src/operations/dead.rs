//! Dead tasks by error: a thousand failures are usually a handful of causes.

use std::collections::HashMap;

use windlass_core::{
    Name, State, TaskId, Timestamp,
    store::{Filter, PAGE_MAX, SummaryRecord, cause_of},
};

use super::{Operations, Result};
use crate::api::{DEAD_COUNTS, DeadGroup, DeadGroups, ErrorDetail, TaskFilter};

/// Dead tasks that one call looks at, the newest.
pub const DEAD_SCAN_MAX: u64 = 10_000;

/// Reads of the store by one call. Each looks at a bounded number of tasks, of which a narrow filter may match
/// none: without a bound such a filter would read the whole store.
const READS_MAX: usize = 20;

impl Operations {
    /// Groups dead tasks by kind and error, the largest group first. `more` says that older tasks were not looked
    /// at.
    pub async fn dead_groups(&self, filter: TaskFilter) -> Result<DeadGroups> {
        if let Some(state) = filter.state.filter(|state| *state != State::Dead) {
            return Err(ErrorDetail::invalid(format!(
                "state {state} is not dead; only dead tasks are grouped"
            )));
        }
        let filter = Filter { state: Some(State::Dead), ..filter.checked()? };
        let mut groups: HashMap<(Name, String), Group> = HashMap::new();
        let (mut looked_at, mut after) = (0, None);
        for _ in 0..READS_MAX {
            let page = self.store.summaries(&filter, after, PAGE_MAX).await?;
            looked_at += page.tasks.len() as u64;
            for task in page.tasks {
                let cause = cause_of(task.error.as_deref());
                groups.entry((task.lane.kind.clone(), cause)).or_insert_with(|| Group::of(&task)).add(&task);
            }
            after = page.next;
            if after.is_none() || looked_at >= DEAD_SCAN_MAX {
                break;
            }
        }
        Ok(answer(groups, looked_at, after.is_some()))
    }
}

/// What is known of a group while tasks are looked at.
struct Group {
    count: u64,
    example: TaskId,
    /// When its tasks ended; as many as were looked at, and so bounded.
    ends: Vec<Timestamp>,
}

impl Group {
    fn of(task: &SummaryRecord) -> Self {
        Self { count: 0, example: task.id, ends: Vec::new() }
    }

    fn add(&mut self, task: &SummaryRecord) {
        self.count += 1;
        self.example = self.example.max(task.id);
        self.ends.extend(task.ended_at);
    }
}

/// The groups as they are shown, all with the same time axis.
fn answer(groups: HashMap<(Name, String), Group>, looked_at: u64, more: bool) -> DeadGroups {
    let ends = || groups.values().flat_map(|group| &group.ends).copied();
    let (first, last) = (ends().min(), ends().max());
    let mut shown: Vec<_> = groups
        .into_iter()
        .map(|((kind, error), group)| DeadGroup {
            error,
            kind,
            count: group.count,
            example: group.example,
            first_ended_at: group.ends.iter().min().copied(),
            last_ended_at: group.ends.iter().max().copied(),
            counts: counts(&group.ends, first, last),
        })
        .collect();
    shown.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| b.example.cmp(&a.example)));
    DeadGroups { groups: shown, looked_at, more, first_ended_at: first, last_ended_at: last }
}

/// How many of these times lie in each equal part of a time.
fn counts(ends: &[Timestamp], first: Option<Timestamp>, last: Option<Timestamp>) -> Vec<u64> {
    let mut counts = vec![0; DEAD_COUNTS];
    let (Some(first), Some(last)) = (first, last) else { return counts };
    // The last moment belongs to the last part.
    let span = last.since(first).as_millis() + 1;
    for end in ends {
        let part = end.since(first).as_millis() * DEAD_COUNTS as u128 / span;
        if let Some(count) = counts.get_mut(part as usize) {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_in_equal_parts_of_the_time() {
        let at = |ms: &[i64]| ms.iter().map(|ms| Timestamp::from_ms(*ms)).collect::<Vec<_>>();
        let (first, last) = (Some(Timestamp::from_ms(1_000)), Some(Timestamp::from_ms(24_999)));
        let counted = counts(&at(&[1_000, 1_999, 2_000, 24_999]), first, last);
        assert_eq!((counted[0], counted[1], counted[DEAD_COUNTS - 1]), (2, 1, 1));
        assert_eq!(counted.iter().sum::<u64>(), 4);
        assert_eq!(counts(&at(&[7]), Some(Timestamp::from_ms(7)), Some(Timestamp::from_ms(7)))[0], 1);
        assert_eq!(counts(&[], None, None), [0; DEAD_COUNTS]);
    }
}
