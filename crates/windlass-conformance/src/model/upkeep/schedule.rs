//! Recurring tasks: each tick is fired once.

use windlass_core::{Enqueued, Fire, Name, Result, ScheduleRow, schedule::DueSchedules};

use crate::{
    fault::Fault,
    model::{Model, Now},
};

impl Model {
    /// Makes a schedule or replaces its text; its last tick stays.
    pub fn put_schedule(&mut self, row: &ScheduleRow) {
        let (last_at, last_task) =
            self.schedules.get(&row.name).map_or((None, None), |old| (old.last_at, old.last_task));
        self.schedules.insert(row.name.clone(), ScheduleRow { last_at, last_task, ..row.clone() });
    }

    /// Every schedule, by name.
    pub fn schedules(&self) -> Vec<ScheduleRow> {
        self.schedules.values().cloned().collect()
    }

    /// Removes a schedule.
    pub fn remove_schedule(&mut self, name: &Name) -> bool {
        self.schedules.remove(name).is_some()
    }

    /// Schedules that are due, the earliest due first.
    pub fn due_schedules(&self, now: Now, limit: u32) -> DueSchedules {
        let mut waiting: Vec<_> = self
            .schedules
            .values()
            .filter(|row| !row.paused)
            .filter_map(|row| Some((row.next_at?, &row.name, row)))
            .collect();
        waiting.sort_unstable_by_key(|(at, name, _)| (*at, *name));
        let due = |at| at <= now.wall;
        let taken = waiting.iter().take_while(|(at, ..)| due(*at)).count().min(limit as usize);
        DueSchedules {
            now: now.wall,
            due: waiting.iter().take(taken).map(|(.., row)| (*row).clone()).collect(),
            next_at: waiting.get(taken).map(|(at, ..)| *at),
        }
    }

    /// Enqueues the task of a tick and sets the next tick, if the schedule still waits for that tick.
    pub fn fire(&mut self, now: Now, fire: &Fire) -> Result<Option<Enqueued>> {
        let awaited = |row: &ScheduleRow| {
            !row.paused
                && (row.next_at == Some(fire.tick) || self.has(Fault::TickFiredTwice))
                && (row.spec == fire.spec || self.has(Fault::ChangedScheduleFired))
                && (fire.tick <= now.wall || self.has(Fault::TickFiredEarly))
        };
        if !self.schedules.get(&fire.name).is_some_and(awaited) {
            return Ok(None);
        }
        let answer = match &fire.task {
            Some(task) => self.enqueue(now, std::slice::from_ref(task))?.first().copied(),
            None => None,
        };
        if let Some(row) = self.schedules.get_mut(&fire.name) {
            row.next_at = fire.next_at;
            if let Some(answer) = answer {
                (row.last_at, row.last_task) = (Some(fire.tick), Some(answer.id));
            }
        }
        Ok(answer)
    }
}
