//! After each call, the jobs and workflows that it touched take their turns: workflows first, then jobs, each
//! in the order of their names.

pub(super) mod job;
pub(super) mod workflow;

use std::collections::BTreeSet;

use windlass_core::{Event, Lane, LaneId, Name, State, TaskId, gate};

use super::{Model, Now};
use crate::fault::Fault;

/// Jobs and workflows whose turn is still to come.
#[derive(Debug, Clone, Default)]
pub(super) struct Touched {
    pub workflows: BTreeSet<Name>,
    pub jobs: BTreeSet<Name>,
}

/// The lanes that live workers serve, and the window, before or after a change.
pub(super) struct Fleet {
    live: BTreeSet<LaneId>,
    slots: u32,
}

impl Model {
    /// Marks the gates of a task for a turn.
    pub(super) fn touch(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(&id) else { return };
        self.touched.workflows.extend(task.record.workflow.clone());
        self.touched.jobs.extend(task.record.job.clone());
    }

    /// Gives turns until none is left. A job that cancels a step touches a workflow, which touches other
    /// jobs. This ends, because each round ends a task or lets one pass.
    pub(super) fn give_turns(&mut self, now: Now) {
        self.last_release += 1;
        loop {
            let workflows = std::mem::take(&mut self.touched.workflows);
            for workflow in &workflows {
                self.pass_on(now, workflow);
            }
            let jobs = std::mem::take(&mut self.touched.jobs);
            for job in &jobs {
                self.turn(now, job);
            }
            if workflows.is_empty() && jobs.is_empty() {
                return;
            }
        }
    }

    /// Whether a registered worker serves the lane and its queue is not paused.
    pub fn is_live(&self, lane: &Lane) -> bool {
        let serves = |worker: &super::Worker| {
            worker.gone.is_none()
                && worker.about.kinds.contains(&lane.kind)
                && (worker.about.queues.is_empty() || worker.about.queues.contains(&lane.queue))
        };
        let live = !self.paused.contains(&lane.queue) && self.workers.values().any(serves);
        live || self.has(Fault::DeadLaneTakesRoom)
    }

    /// The window of a job without a limit.
    pub(super) fn window(&self) -> u32 {
        gate::window(self.fleet().slots)
    }

    pub(super) fn fleet(&self) -> Fleet {
        let live = self.lanes.iter().filter(|lane| self.is_live(lane)).map(|lane| lane.id);
        let registered = self.workers.values().filter(|worker| worker.gone.is_none());
        Fleet { live: live.collect(), slots: registered.map(|worker| worker.about.slots).sum() }
    }

    /// Takes room back from lanes that have lost their last worker, and touches the jobs whose lanes or
    /// window changed.
    pub(super) fn follow_fleet(&mut self, before: &Fleet) {
        let after = self.fleet();
        let mut dying = Vec::new();
        for task in self.tasks.values() {
            let Some(job) = &task.record.job else { continue };
            let lane = task.record.lane.id;
            let unlimited = self.jobs.get(job).is_some_and(|job| job.concurrency.is_none());
            match task.record.state {
                State::Ready if before.live.contains(&lane) && !after.live.contains(&lane) => {
                    dying.push(task.record.id);
                }
                State::Held
                    if (after.live.contains(&lane) && !before.live.contains(&lane))
                        || (unlimited && before.slots != after.slots) =>
                {
                    self.touched.jobs.insert(job.clone());
                }
                _ => {}
            }
        }
        for id in dying {
            self.shift(id, Event::Demote);
            self.touch(id);
        }
    }
}
