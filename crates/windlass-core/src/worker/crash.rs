//! What the death of a worker process means for the tasks that it held.
//!
//! A first crash says little, so the tasks run again like any others. A task that a process held at a second
//! crash is a *suspect*. Suspects are narrowed down in groups: each crash splits every group that ran in the
//! process in two. A suspect that is the only member of its group runs alone, so its next crash proves that
//! it kills its process.

use std::time::Duration;

use crate::{id::TaskId, rules::Rules, time::Timestamp};

/// A task with this many crashes is a suspect.
pub const SUSPECT_CRASHES: u32 = 2;

/// How long a group keeps other groups out of its worker, per crash of its tasks. A group that lives longer
/// does not kill quickly, and a long task must not hold up the other groups. The time grows with the crashes,
/// so a task that kills slowly is caught within it after a few of them.
pub const QUIET_PER_CRASH: Duration = Duration::from_secs(10);

/// Whether a task with this many crashes is a suspect.
pub fn is_suspect(crashes: u32) -> bool {
    crashes >= SUSPECT_CRASHES
}

/// A group of suspects. Its number rises, so older groups come first. Group zero is for suspects that an
/// older version or another store left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Group(i64);

impl Group {
    /// A group with this number; `alone` if it has one member only.
    pub fn new(number: i64, alone: bool) -> Self {
        Self(if alone { -number } else { number })
    }

    /// The group of a stored number; negative means alone.
    pub fn from_stored(stored: i64) -> Self {
        Self(stored)
    }

    /// The number that stores keep.
    pub fn to_stored(self) -> i64 {
        self.0
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// Whether it was made with one member only.
    pub fn is_alone(self) -> bool {
        self.0 < 0
    }
}

/// A task that a dead worker held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// The task.
    pub id: TaskId,
    /// Its crashes before this one.
    pub crashes: u32,
    /// Its group; meaningless unless it was a suspect.
    pub group: Group,
}

/// The effect of a crash on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs again like any other.
    Again,
    /// It is a suspect, in one of the new groups.
    Suspect {
        /// The index of that group, from zero; the store gives each group a number.
        place: usize,
        /// Whether it is the only one in it.
        alone: bool,
    },
    /// It is dead: it ran alone in the process, and has reached the most crashes.
    Dead,
}

/// Decides the effect of a crash on the tasks that one worker held, in the order of `victims`. `was_alone`:
/// the worker held only this task.
///
/// Each task counts a crash. The suspects of each group, and the new suspects, are split in two halves by
/// their ids. Groups are never merged, so a task that kills its process is found after as many crashes as its
/// group can be halved.
pub fn judge(victims: &[Victim], was_alone: bool, rules: &Rules) -> Vec<Fate> {
    let mut fates = vec![Fate::Again; victims.len()];
    let mut suspects: Vec<(Option<Group>, TaskId, usize)> = Vec::new();
    for (place, victim) in victims.iter().enumerate() {
        let crashes = victim.crashes.saturating_add(1);
        if was_alone && crashes >= rules.max_crashes {
            set(&mut fates, place, Fate::Dead);
        } else if is_suspect(crashes) {
            suspects.push((is_suspect(victim.crashes).then_some(victim.group), victim.id, place));
        }
    }
    suspects.sort_unstable();
    let mut next = 0;
    for together in suspects.chunk_by(|one, other| one.0 == other.0) {
        let (first, second) = together.split_at(together.len().div_ceil(2));
        for half in [first, second].into_iter().filter(|half| !half.is_empty()) {
            for (.., place) in half {
                set(&mut fates, *place, Fate::Suspect { place: next, alone: half.len() == 1 });
            }
            next += 1;
        }
    }
    fates
}

fn set(fates: &mut [Fate], place: usize, fate: Fate) {
    if let Some(slot) = fates.get_mut(place) {
        *slot = fate;
    }
}

/// How many groups the fates name.
pub fn groups(fates: &[Fate]) -> usize {
    let places = fates.iter().filter_map(|fate| match fate {
        Fate::Suspect { place, .. } => Some(place + 1),
        Fate::Again | Fate::Dead => None,
    });
    places.max().unwrap_or(0)
}

/// Whether the next crash of this suspect, if it runs alone, ends it.
pub fn is_last_chance(crashes: u32, group: Group, rules: &Rules) -> bool {
    is_suspect(crashes) && group.is_alone() && crashes.saturating_add(1) >= rules.max_crashes
}

/// Until when a suspect that was claimed at `claimed_at` keeps other groups out.
pub fn quiet_until(claimed_at: Timestamp, crashes: u32) -> Timestamp {
    claimed_at.after(QUIET_PER_CRASH.saturating_mul(crashes))
}

/// What a worker holds of one group of suspects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldGroup {
    /// The group.
    pub group: Group,
    /// The most crashes among its tasks.
    pub crashes: u32,
    /// Until when the group keeps other groups out.
    pub quiet_until: Timestamp,
}

/// Which suspects a worker may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It runs a suspect on its last chance: it takes nothing at all.
    Isolated,
    /// It runs members of these groups: it takes more of them, and no others.
    Only(Vec<Group>),
    /// It takes members of the next group.
    Next {
        /// Whether the worker holds nothing, so that a suspect on its last chance may run.
        is_empty: bool,
    },
}

/// Decides which suspects a worker may take, from what it holds.
pub fn turn(held: &[HeldGroup], holds: usize, now: Timestamp, rules: &Rules) -> Turn {
    let is_quiet = |held: &HeldGroup| now < held.quiet_until;
    if let [only] = held
        && holds == 1
        && is_last_chance(only.crashes, only.group, rules)
        && is_quiet(only)
    {
        return Turn::Isolated;
    }
    if held.iter().any(is_quiet) {
        return Turn::Only(held.iter().map(|held| held.group).collect());
    }
    Turn::Next { is_empty: holds == 0 }
}

impl Turn {
    /// The groups that the worker may take, out of those that wait, each given with the most crashes of its
    /// tasks. An empty worker takes a suspect on its last chance first, because it may not be empty again for
    /// long.
    pub fn choose(&self, waiting: &[(Group, u32)], rules: &Rules) -> Vec<Group> {
        match self {
            Self::Isolated => Vec::new(),
            Self::Only(groups) => groups.clone(),
            Self::Next { is_empty } => {
                let is_last = |(group, crashes): &(Group, u32)| is_last_chance(*crashes, *group, rules);
                let first = |is_wanted: bool| {
                    waiting
                        .iter()
                        .filter(|one| is_last(one) == is_wanted)
                        .map(|(group, _)| *group)
                        .min_by_key(|group| group.number())
                };
                let alone = if *is_empty { first(true) } else { None };
                alone.or_else(|| first(false)).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
