//! Suspects of crashes: which group a worker may take, and which suspects let other tasks pass meanwhile.

use std::collections::BTreeSet;

use windlass_core::{
    Demand, Event, State, TaskId, WorkerId,
    crash::{self, Fate, Group, HeldGroup, Turn, Victim},
};

use crate::{
    fault::Fault,
    model::{Model, Now, Task},
};

impl Model {
    /// A worker died while it held these tasks.
    pub(in crate::model) fn crash_all(&mut self, ids: &[TaskId], was_alone: bool, now: Now) {
        let victim = |id: &TaskId| {
            let task = self.tasks.get(id)?;
            let early = u32::from(self.has(Fault::FirstCrashSuspects) && task.record.crashes == 0);
            Some(Victim { id: *id, crashes: task.record.crashes + early, group: task.group })
        };
        let victims: Vec<Victim> = ids.iter().filter_map(victim).collect();
        let mut fates = crash::judge(&victims, was_alone, &self.rules);
        let before = self.last_group;
        self.last_group += crash::groups(&fates) as i64;
        if self.has(Fault::GroupsNotHalved) {
            for fate in fates.iter_mut().filter(|fate| matches!(fate, Fate::Suspect { .. })) {
                *fate = Fate::Suspect { place: 0, alone: victims.len() == 1 };
            }
        }
        for (victim, fate) in victims.iter().zip(fates) {
            let blamed = self.has(Fault::CrowdIsBlamed) && victim.crashes + 1 >= self.rules.max_crashes;
            let fate = if blamed { Fate::Dead } else { fate };
            let group = match fate {
                Fate::Suspect { place, alone } => Group::new(before + 1 + place as i64, alone),
                Fate::Again | Fate::Dead => Group::default(),
            };
            if let Some(task) = self.tasks.get_mut(&victim.id) {
                task.group = group;
            }
            self.crash(victim.id, fate == Fate::Dead, now);
        }
    }

    pub(in crate::model) fn is_suspect(&self, id: TaskId) -> bool {
        self.tasks.get(&id).is_some_and(|task| self.suspected(task))
    }

    fn suspected(&self, task: &Task) -> bool {
        let crashes = task.record.crashes;
        crash::is_suspect(crashes) || self.has(Fault::FirstCrashSuspects) && crashes > 0
    }

    pub(in crate::model) fn is_last_chance(&self, id: TaskId) -> bool {
        let is_last = |task: &Task| crash::is_last_chance(task.record.crashes, task.group, &self.rules);
        !self.has(Fault::NoIsolation) && self.tasks.get(&id).is_some_and(is_last)
    }

    /// Which suspects a worker may take, from what it holds.
    pub(in crate::model) fn suspects_turn(&self, worker: WorkerId, now: Now) -> Turn {
        let held = self.held_by(worker);
        let groups: Vec<HeldGroup> = held
            .iter()
            .filter_map(|id| self.tasks.get(id))
            .filter(|task| self.suspected(task))
            .map(|task| HeldGroup {
                group: task.group,
                crashes: task.record.crashes,
                quiet_until: crash::quiet_until(
                    task.record.started_at.unwrap_or_default(),
                    task.record.crashes,
                ),
            })
            .collect();
        match crash::turn(&groups, held.len(), now.wall, &self.rules) {
            Turn::Isolated if self.has(Fault::NoIsolation) => Turn::Only(Vec::new()),
            turn => turn,
        }
    }

    /// Suspects that a demand could get if their group were the next one.
    fn waiting_suspects(&self, demand: &Demand) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(|task| {
            (task.record.state == State::Ready || task.record.state == State::Held && task.aside)
                && self.suspected(task)
                && demand.lanes.contains(&task.record.lane.id)
                && !self.paused.contains(&task.record.lane.queue)
        })
    }

    /// The groups whose members a demand may get.
    pub(in crate::model) fn groups_of(&self, demand: &Demand, now: Now) -> Vec<Group> {
        let waiting: Vec<_> =
            self.waiting_suspects(demand).map(|task| (task.group, task.record.crashes)).collect();
        if self.has(Fault::GroupsTogether) {
            return waiting.into_iter().map(|(group, _)| group).collect();
        }
        self.suspects_turn(demand.worker, now).choose(&waiting, &self.rules)
    }

    /// A suspect with a job becomes ready if its group is next, and held if its group has to wait.
    pub(in crate::model) fn stand_aside(&mut self, now: Now, demands: &[Demand]) {
        let demands: Vec<&Demand> = demands.iter().filter(|demand| demand.n > 0).collect();
        let next: Vec<Group> = demands.iter().flat_map(|demand| self.groups_of(demand, now)).collect();
        let running: BTreeSet<Group> = self
            .tasks
            .values()
            .filter(|task| task.record.state == State::Running && self.suspected(task))
            .map(|task| task.group)
            .collect();
        let (mut back, mut away) = (BTreeSet::new(), BTreeSet::new());
        for demand in demands {
            for task in self.waiting_suspects(demand).filter(|task| task.record.job.is_some()) {
                let is_next = next.contains(&task.group);
                if task.record.state == State::Held && is_next {
                    back.insert(task.record.id);
                } else if task.record.state == State::Ready && !is_next && !running.contains(&task.group) {
                    away.insert(task.record.id);
                }
            }
        }
        if self.has(Fault::SuspectKeepsRoom) {
            away.clear();
        }
        for (id, aside) in back.into_iter().map(|id| (id, false)).chain(away.into_iter().map(|id| (id, true)))
        {
            if aside {
                self.shift(id, Event::Demote);
            }
            if let Some(task) = self.tasks.get_mut(&id) {
                task.aside = aside;
            }
            self.touch(id);
        }
        self.give_turns(now);
    }
}
