//! Attempts that failed or were snoozed and whose tasks are due again later. Many may fail at once, so one
//! statement writes them one after another.

use windlass_core::{State, Timestamp, WorkerId, task::AttemptResult};

use crate::{
    connection::tx::{Step, Tx},
    settle::ends::{Ending, check},
    sql,
};

/// Attempts of one batch that end this way.
#[derive(Default)]
pub(crate) struct Later<'a> {
    endings: Vec<(Ending, Timestamp, Option<&'a str>)>,
}

impl<'a> Later<'a> {
    /// Adds an attempt whose task is due at `due_at`: a failure with its error, or a snooze without one.
    pub(crate) fn add(&mut self, ending: Ending, due_at: Timestamp, error: Option<&'a str>) {
        self.endings.push((ending, due_at, error));
    }

    pub(crate) fn write(&self, tx: &mut Tx<'_>, worker: WorkerId) -> Step<()> {
        if self.endings.is_empty() {
            return Ok(());
        }
        let mut statement = tx.sql(sql::SETTLE_RETRY)?;
        statement.raw_bind_parameter(7, worker.0)?;
        for (ending, due_at, error) in &self.endings {
            let (attempt, result) = match error {
                Some(_) => (ending.held.attempt, AttemptResult::Retry),
                None => (ending.held.attempt.saturating_sub(1), AttemptResult::Snoozed),
            };
            statement.raw_bind_parameter(1, due_at.as_ms())?;
            statement.raw_bind_parameter(2, attempt)?;
            statement.raw_bind_parameter(3, error)?;
            statement.raw_bind_parameter(4, ending.log(tx, result, *error)?)?;
            statement.raw_bind_parameter(5, ending.id.raw())?;
            statement.raw_bind_parameter(6, ending.held.lease)?;
            check(statement.raw_execute()?)?;
        }
        drop(statement);
        for (ending, due_at, _) in &self.endings {
            tx.memory.count_move(ending.held.lane, State::Running, State::Scheduled, 1);
            tx.effects.scheduled(*due_at);
            ending.over(tx);
            ending.tell_gates(tx, State::Scheduled)?;
        }
        Ok(())
    }
}
