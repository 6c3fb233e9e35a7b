//! Bulk runs, and the last calls that changed something.

use windlass_core::{
    CallRecord, NewCall, Result, RunRow,
    operators::{CALLS_KEPT, RUNS_KEPT, RUNS_MAX, StillRuns, check_run, too_many_runs},
};

use crate::model::{Model, Now};

/// What operators did and do; the oldest is the first in each list.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct Operated {
    runs: Vec<RunRow>,
    last_run: u64,
    calls: Vec<CallRecord>,
    last_call: u64,
}

impl Model {
    /// Adds a run, and removes the oldest ended ones over the limit.
    pub fn start_run(&mut self, now: Now, text: &str) -> Result<RunRow> {
        check_run(text)?;
        let operated = &mut self.operated;
        if operated.runs.iter().filter(|run| run.is_running).count() >= RUNS_MAX as usize {
            return Err(too_many_runs());
        }
        let ended = operated.runs.iter().filter(|run| !run.is_running).count();
        let mut surplus = ended.saturating_sub(RUNS_KEPT as usize);
        operated.runs.retain(|run| {
            let goes = surplus > 0 && !run.is_running;
            surplus -= usize::from(goes);
            !goes
        });
        operated.last_run += 1;
        let run = RunRow {
            id: operated.last_run,
            version: 1,
            is_running: true,
            started_at: now.wall,
            updated_at: now.wall,
            read_at: now.wall,
            text: text.to_owned(),
        };
        operated.runs.push(run.clone());
        Ok(run)
    }

    /// Replaces the text of a run that still has this version.
    pub fn save_run(
        &mut self,
        now: Now,
        id: u64,
        version: u64,
        still: StillRuns,
        text: &str,
    ) -> Result<Option<RunRow>> {
        check_run(text)?;
        let Some(run) = self.operated.runs.iter_mut().find(|run| run.id == id && run.version == version)
        else {
            return Ok(None);
        };
        run.version += 1;
        run.is_running &= still == StillRuns::Yes;
        run.updated_at = now.wall;
        text.clone_into(&mut run.text);
        Ok(Some(RunRow { read_at: now.wall, ..run.clone() }))
    }

    /// Runs that have not ended, oldest first.
    pub fn running_runs(&self, now: Now) -> Vec<RunRow> {
        let running = self.operated.runs.iter().filter(|run| run.is_running);
        running.map(|run| RunRow { read_at: now.wall, ..run.clone() }).collect()
    }

    /// The newest runs, newest first.
    pub fn runs(&self, now: Now, limit: usize) -> Vec<RunRow> {
        let newest = self.operated.runs.iter().rev().take(limit);
        newest.map(|run| RunRow { read_at: now.wall, ..run.clone() }).collect()
    }

    /// One run.
    pub fn bulk_run(&self, now: Now, id: u64) -> Option<RunRow> {
        let run = self.operated.runs.iter().find(|run| run.id == id)?;
        Some(RunRow { read_at: now.wall, ..run.clone() })
    }

    /// Adds calls, and removes the oldest ones over the limit.
    pub fn note_calls(&mut self, now: Now, calls: &[NewCall]) {
        let operated = &mut self.operated;
        for NewCall { age, who, call, about, result } in calls.iter().cloned() {
            operated.last_call += 1;
            let (id, at) = (operated.last_call, now.wall.before(age));
            operated.calls.push(CallRecord { id, at, who, call, about, result });
        }
        let surplus = operated.calls.len().saturating_sub(CALLS_KEPT as usize);
        operated.calls.drain(..surplus);
    }

    /// Calls, newest first.
    pub fn calls(&self, below: Option<u64>, limit: usize) -> Vec<CallRecord> {
        let calls = self.operated.calls.iter().rev();
        calls.filter(|call| below.is_none_or(|below| call.id < below)).take(limit).cloned().collect()
    }
}
