//! Lanes: made by the first task of their names, retired when they stand empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use windlass_core::{
    Lane, LaneId, Name, NewTask, Result, State,
    lanes::{LOOK_EVERY, LaneCounts, retired},
};

use crate::{
    fault::Fault,
    model::{Model, Now},
};

/// Lanes without tasks.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct Unused {
    looked_at: Option<Duration>,
    /// When a look found them empty for the first time.
    idle: BTreeMap<LaneId, Duration>,
    retired: BTreeSet<LaneId>,
}

impl Model {
    /// Every lane that is not retired.
    pub(in crate::model) fn lanes_in_use(&self) -> impl Iterator<Item = &Arc<Lane>> {
        self.lanes.iter().filter(|lane| !self.unused.retired.contains(&lane.id))
    }

    /// How many lanes there are.
    pub fn lane_counts(&self) -> LaneCounts {
        LaneCounts { in_use: self.lanes_in_use().count(), ever: self.lanes.len() }
    }

    /// Refuses tasks whose new lanes are too many.
    pub(in crate::model) fn check_lanes(&self, tasks: &[NewTask]) -> Result<()> {
        let names: BTreeSet<(&Name, &Name)> = tasks.iter().map(|task| (&task.queue, &task.kind)).collect();
        let is_new = |(queue, kind): &&(&Name, &Name)| {
            !self.lanes.iter().any(|lane| lane.queue == **queue && lane.kind == **kind)
        };
        if self.has(Fault::LanesUnbounded) {
            return Ok(());
        }
        self.lane_counts().check(&self.rules, names.iter().filter(is_new).count())
    }

    /// The lane of these names, in use from now on.
    pub(in crate::model) fn intern(&mut self, queue: &Name, kind: &Name) -> Arc<Lane> {
        let known = self.lanes.iter().find(|lane| lane.queue == *queue && lane.kind == *kind).cloned();
        let lane = known.unwrap_or_else(|| {
            let id = LaneId(self.lanes.len() as i64 + 1);
            let lane = Arc::new(Lane { id, queue: queue.clone(), kind: kind.clone() });
            self.lanes.push(Arc::clone(&lane));
            lane
        });
        self.unused.idle.remove(&lane.id);
        if !self.has(Fault::RetiredLaneStaysAway) {
            self.unused.retired.remove(&lane.id);
        }
        lane
    }

    /// A look at the lanes: notes which are empty, and retires those that have been so since the last look.
    pub(in crate::model) fn look_at_lanes(&mut self, now: Now) {
        let surplus = self.lane_counts().surplus(&self.rules);
        let is_early = self.unused.looked_at.is_some_and(|at| now.monotonic.saturating_sub(at) < LOOK_EVERY);
        if is_early || surplus == 0 {
            return;
        }
        self.unused.looked_at = Some(now.monotonic);
        let empty: Vec<LaneId> =
            self.lanes_in_use().filter(|lane| self.is_empty(lane)).map(|lane| lane.id).collect();
        self.unused.idle.retain(|lane, _| empty.contains(lane));
        for lane in empty {
            self.unused.idle.entry(lane).or_insert(now.monotonic);
        }
        let empty_for = |since: &Duration| now.monotonic.saturating_sub(*since);
        let idle = self.unused.idle.iter().map(|(lane, since)| (*lane, empty_for(since)));
        for lane in retired(idle.collect::<Vec<_>>(), surplus) {
            self.unused.idle.remove(&lane);
            self.unused.retired.insert(lane);
        }
    }

    /// Whether nothing is in a lane that could come back to it. A paused queue is shown, so its lanes stay.
    fn is_empty(&self, lane: &Lane) -> bool {
        let counts = |state: State| match state {
            State::Done | State::Cancelled => false,
            State::Scheduled => !self.has(Fault::ScheduledLaneRetired),
            _ => true,
        };
        let mut tasks = self.tasks.values().filter(|task| task.record.lane.id == lane.id);
        !self.paused.contains(&lane.queue) && !tasks.any(|task| counts(task.record.state))
    }
}
