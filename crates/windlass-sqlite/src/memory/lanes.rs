//! Which lanes are in use, which of them stand empty, and which are retired.

use std::time::Duration;

use windlass_core::{LaneId, lanes::LaneCounts, store::Depth};

use super::{LaneEntry, Memory, Undo, lane_place};

/// How a lane is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A task has entered it since the last look.
    Taken,
    /// A look found it empty at this time, and no task has entered it since.
    Idle(Duration),
    /// It does not count as a lane in use, and is not listed.
    Retired,
}

impl LaneEntry {
    fn is_retired(&self) -> bool {
        self.how_used == Use::Retired
    }

    /// Whether nothing is in it that could come back to it. A paused queue is shown, so its lanes stay.
    fn is_empty(&self) -> bool {
        self.depth == Depth::default() && !self.paused
    }
}

impl Memory {
    /// Every lane that is not retired, in order of its id.
    pub(crate) fn lanes_in_use(&self) -> impl Iterator<Item = &LaneEntry> {
        self.lanes.iter().filter(|entry| !entry.is_retired())
    }

    /// How many lanes there are.
    pub(crate) fn lane_counts(&self) -> LaneCounts {
        LaneCounts { in_use: self.lanes.len() - self.retired_lanes, ever: self.lanes.len() }
    }

    /// Notes how a lane is used.
    pub(crate) fn set_use(&mut self, lane: LaneId, how_used: Use) {
        if let Some(before) = self.apply_use(lane, how_used) {
            self.undo.push(Undo::Use(lane, before));
        }
    }

    /// Returns how it was used before.
    pub(super) fn apply_use(&mut self, lane: LaneId, how_used: Use) -> Option<Use> {
        let entry = self.lanes.get_mut(lane_place(lane)?)?;
        let before = std::mem::replace(&mut entry.how_used, how_used);
        self.retired_lanes += usize::from(how_used == Use::Retired);
        self.retired_lanes -= usize::from(before == Use::Retired);
        Some(before)
    }

    /// Notes which lanes are empty now; answers those that are, and for how long.
    pub(crate) fn look_at_lanes(&mut self, now: Duration) -> Vec<(LaneId, Duration)> {
        let mut idle = Vec::new();
        for entry in self.lanes.iter_mut().filter(|entry| !entry.is_retired()) {
            // A look that is undone costs time and nothing else, so no undo record is kept.
            entry.how_used = match entry.how_used {
                _ if !entry.is_empty() => Use::Taken,
                Use::Idle(since) => Use::Idle(since),
                _ => Use::Idle(now),
            };
            if let Use::Idle(since) = entry.how_used {
                idle.push((entry.lane.id, now.saturating_sub(since)));
            }
        }
        idle
    }
}
