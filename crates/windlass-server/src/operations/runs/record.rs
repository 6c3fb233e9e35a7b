//! The text of a run in the store.

use serde::{Deserialize, Serialize};
use windlass_core::{RunRow, TaskId, operators::StillRuns, store::Changed};

use super::Result;
use crate::api::{
    ErrorCode, ErrorDetail, REFUSALS_MAX, Refusal, RunAction, RunRequest, RunState, RunView, TaskFilter,
};

/// What a run is to do, and what it has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) action: RunAction,
    pub(super) filter: TaskFilter,
    pub(super) over_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) by: String,
    pub(super) state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<ErrorDetail>,
    pub(super) matched: u64,
    pub(super) more: bool,
    pub(super) changed: u64,
    pub(super) refused: u64,
    #[serde(default)]
    pub(super) refusals: Vec<Refusal>,
    /// For how long servers have worked on it: a time without a server does not count, so that what was not done
    /// in it does not come all at once afterwards.
    pub(super) worked_ms: u64,
    /// Which of its states it looks at.
    pub(super) state_no: usize,
    /// The last task of that state that it has looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<TaskId>,
    /// The process that works on it. So no process takes the record of another one for its own.
    pub(super) owner: String,
    /// Whether its server has stopped and left it to another one.
    #[serde(default)]
    pub(super) left: bool,
}

impl Run {
    pub(super) fn new(request: RunRequest, by: String, owner: String, (matched, more): (u64, bool)) -> Self {
        let RunRequest { action, filter, over_ms, reason, .. } = request;
        Self {
            action,
            filter,
            over_ms: over_ms.unwrap_or(0),
            reason,
            by,
            state: RunState::Running,
            stopped_by: None,
            failure: None,
            matched,
            more,
            changed: 0,
            refused: 0,
            refusals: Vec::new(),
            worked_ms: 0,
            state_no: 0,
            after: None,
            owner,
            left: false,
        }
    }

    pub(super) fn read(row: &RunRow) -> Result<Self> {
        serde_json::from_str(&row.text).map_err(|error| {
            let message = format!("run {} has a form that this program cannot read: {error}", row.id);
            ErrorDetail::new(ErrorCode::Unsupported, message).hint("a newer program may have written it")
        })
    }

    pub(super) fn text(&self) -> String {
        // Our own types always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn still(&self) -> StillRuns {
        if self.state == RunState::Running { StillRuns::Yes } else { StillRuns::No }
    }

    /// Tasks that it has changed, or that could not be changed.
    pub(super) fn handled(&self) -> u64 {
        self.changed + self.refused
    }

    pub(super) fn count(&mut self, changes: Vec<Changed>) {
        for Changed { id, result } in changes {
            match result {
                Ok(_) => self.changed += 1,
                Err(error) => {
                    self.refused += 1;
                    self.refuse(Refusal { id, error: error.into() });
                }
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        if self.refusals.len() < REFUSALS_MAX {
            self.refusals.push(refusal);
        }
    }

    /// Adds what another server did after the record that it knew last.
    pub(super) fn add_late(&mut self, before: &Self, after: &Self) {
        self.changed += after.changed.saturating_sub(before.changed);
        self.refused += after.refused.saturating_sub(before.refused);
        for refusal in after.refusals.iter().skip(before.refusals.len()) {
            self.refuse(refusal.clone());
        }
    }

    pub(super) fn view(&self, row: &RunRow) -> RunView {
        let run = self.clone();
        RunView {
            id: row.id,
            action: run.action,
            filter: run.filter,
            over_ms: run.over_ms,
            reason: run.reason,
            by: run.by,
            state: run.state,
            stopped_by: run.stopped_by,
            failure: run.failure,
            matched: run.matched,
            more: run.more,
            changed: run.changed,
            refused: run.refused,
            refusals: run.refusals,
            started_at: row.started_at,
            updated_at: row.updated_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::{Error, State};

    use super::*;

    fn run() -> Run {
        Run::new(RunRequest::default(), "anybody".into(), "a".into(), (5, false))
    }

    fn change(id: i64, result: Result<State, Error>) -> Changed {
        Changed { id: TaskId::from_raw(id), result }
    }

    #[test]
    fn a_stopped_record_gets_what_was_changed_meanwhile() {
        let before = run();
        let mut after = before.clone();
        after.count(vec![
            change(1, Ok(State::Ready)),
            change(2, Err(Error::NotFound("task 2".into()))),
            change(3, Ok(State::Ready)),
        ]);
        let mut stopped = Run { state: RunState::Stopped, ..before.clone() };
        stopped.add_late(&before, &after);
        assert_eq!((stopped.changed, stopped.refused, stopped.refusals.len()), (2, 1, 1));
        assert_eq!((stopped.state, stopped.still()), (RunState::Stopped, StillRuns::No));
    }

    #[test]
    fn only_the_first_refusals_are_kept() {
        let mut run = run();
        let refused = (1..=50).map(|id| change(id, Err(Error::NotFound("it".into()))));
        run.count(refused.collect());
        assert_eq!((run.refused, run.refusals.len()), (50, REFUSALS_MAX));
    }

    #[test]
    fn the_text_of_a_record_is_read_as_it_was_written() {
        let run = Run { after: Some(TaskId::from_raw(7)), worked_ms: 3, left: true, ..run() };
        assert_eq!(serde_json::from_str::<Run>(&run.text()).unwrap(), run);
    }
}
