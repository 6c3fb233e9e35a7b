//! What the death of a process says about the tasks that it took along.
//!
//! A first crash says little, so its tasks run again like any others. A task that was there at a second one is a *suspect*.
//! Suspects are narrowed down in groups: each crash splits every group that ran in the process in two. One that is the only
//! member of its group runs alone, so that its next crash is a proof.

use std::time::Duration;

use crate::{id::TaskId, rules::Rules, time::Timestamp};

/// From so many crashes on a task is a suspect.
pub const SUSPECT_CRASHES: u32 = 2;

/// How long a group keeps others out of its worker, for each crash of its tasks. One that lives longer than that is not
/// quick poison, and a long task must not hold up the other groups. It grows with the crashes, so that a slow
/// killer is caught inside of it after some of them.
pub const QUIET_PER_CRASH: Duration = Duration::from_secs(10);

/// Whether a task with so many crashes is a suspect.
pub fn is_suspect(crashes: u32) -> bool {
    crashes >= SUSPECT_CRASHES
}

/// A group of suspects: a number that rises, so that older groups come first. Zero is the group of suspects that come
/// from an older version or another store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Group(i64);

impl Group {
    /// A group with this number; `alone` if it has one member only.
    pub fn new(number: i64, alone: bool) -> Self {
        Self(if alone { -number } else { number })
    }

    /// As it was stored; negative means alone.
    pub fn from_stored(stored: i64) -> Self {
        Self(stored)
    }

    /// As it is stored.
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
    /// Its group; without meaning unless it was a suspect.
    pub group: Group,
}

/// What a crash makes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs again like any other.
    Again,
    /// It is a suspect in the group with this place in the order of the new groups.
    Suspect {
        /// Counts from zero; the store draws a number for each.
        place: usize,
        /// Whether it is the only one in it.
        alone: bool,
    },
    /// It is dead: its process died with it alone, and often enough.
    Dead,
}

/// Decides what a crash makes of tasks that one worker held, in the order of the victims. `was_alone`: the worker held
/// nothing else.
///
/// Each task counts a crash. Suspects that ran in one group, and the new ones, are split in two halves by their ids. Groups
/// are never merged, so a task that kills alone is found after as many crashes as its group can be halved.
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

/// How many groups a judgement makes.
pub fn groups(fates: &[Fate]) -> usize {
    let places = fates.iter().filter_map(|fate| match fate {
        Fate::Suspect { place, .. } => Some(place + 1),
        Fate::Again | Fate::Dead => None,
    });
    places.max().unwrap_or(0)
}

/// Whether the next crash of a suspect ends it if it is alone then. It runs alone, so that this crash is a proof.
pub fn is_last_chance(crashes: u32, group: Group, rules: &Rules) -> bool {
    is_suspect(crashes) && group.is_alone() && crashes.saturating_add(1) >= rules.max_crashes
}

/// Until when a suspect that was claimed at a time keeps other groups out.
pub fn quiet_until(claimed_at: Timestamp, crashes: u32) -> Timestamp {
    claimed_at.after(QUIET_PER_CRASH.saturating_mul(crashes))
}

/// What a worker holds of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldGroup {
    /// The group.
    pub group: Group,
    /// The most crashes among its tasks.
    pub crashes: u32,
    /// Until when it keeps others out.
    pub quiet_until: Timestamp,
}

/// Which suspects a worker may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It runs one on its last chance: it takes nothing at all.
    Isolated,
    /// It runs members of these groups: more of them, and no others.
    Only(Vec<Group>),
    /// Those of the group that is next.
    Next {
        /// Whether the worker holds nothing, so that one on its last chance may run.
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
    /// The groups that the worker may take, of those that wait with the most crashes of their tasks. An empty worker takes one on
    /// its last chance first: it may not be empty again for long.
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
