//! Cancel, retry and removal of everything that a filter matches, in bounded steps.

use std::{collections::BTreeSet, time::Duration};

use windlass_core::{
    Name, State, TaskId,
    store::{Changed, Filter, PAGE_MAX, Redrive},
};

use super::{Operations, Result, duration};
use crate::api::{
    BULK_LIMIT_MAX, BulkRequest, BulkResponse, ErrorDetail, FILTER_FIELDS, REFUSALS_MAX, Refusal, TaskFilter,
};

/// Tasks changed in one transaction: short enough that workers do not notice.
const STEP_TASKS: usize = 500;

/// The tasks that matched.
struct Matched {
    ids: Vec<TaskId>,
    more: bool,
}

impl Operations {
    /// Cancels every unfinished task that the filter matches.
    ///
    /// Not all or nothing: tasks are cancelled in steps, and the answer says how many were.
    pub async fn bulk_cancel(&self, request: BulkRequest) -> Result<BulkResponse> {
        if request.filter.is_empty() {
            return Err(ErrorDetail::invalid("filter is empty: that would cancel everything")
                .hint(format!("name at least one of {FILTER_FIELDS}")));
        }
        if request.over_ms.is_some() {
            return Err(ErrorDetail::invalid("over_ms is for retry only"));
        }
        let states = match request.filter.state {
            Some(state) if state.is_ended() => {
                return Err(ErrorDetail::invalid(format!("state {state} has ended; it cannot be cancelled")));
            }
            Some(state) => vec![state],
            None => State::ALL.into_iter().filter(|state| !state.is_ended()).collect(),
        };
        if request.filter.cause.is_some() {
            return Err(ErrorDetail::invalid("cause is of dead tasks; they cannot be cancelled"));
        }
        self.cancel_in(request, &states).await
    }

    /// Cancels the tasks of a queue that have not started.
    pub(super) async fn cancel_waiting(
        &self,
        queue: &Name,
        reason: String,
        dry_run: bool,
    ) -> Result<BulkResponse> {
        let request =
            BulkRequest { filter: of_queue(queue), dry_run, reason: Some(reason), ..BulkRequest::default() };
        let states = State::ALL.into_iter().filter(|state| !state.is_ended() && *state != State::Running);
        self.cancel_in(request, &states.collect::<Vec<_>>()).await
    }

    async fn cancel_in(&self, request: BulkRequest, states: &[State]) -> Result<BulkResponse> {
        let matched = self.matching(request.filter, states, request.limit).await?;
        let mut tally = Tally::new(&matched, request.dry_run);
        if !request.dry_run {
            let reason = self.reason(request.reason.as_deref());
            for step in matched.ids.chunks(STEP_TASKS) {
                tally.add(self.store.cancel(step, &reason).await)?;
            }
        }
        Ok(tally.answer)
    }

    /// Gives every dead task that the filter matches a fresh budget; their starts are spread over `over_ms`.
    ///
    /// Not all or nothing: tasks are changed in steps, and the answer says how many were.
    pub async fn bulk_retry(&self, request: BulkRequest) -> Result<BulkResponse> {
        if let Some(state) = request.filter.state.filter(|state| *state != State::Dead) {
            return Err(ErrorDetail::invalid(format!(
                "state {state} cannot be retried by filter; only dead tasks can"
            ))
            .hint("repeat a done or cancelled task by its id: `windlass tasks retry ID`"));
        }
        if request.reason.is_some() {
            return Err(ErrorDetail::invalid("reason is for cancel only"));
        }
        let over = duration("over_ms", request.over_ms.unwrap_or(0))?;
        let matched = self.matching(request.filter, &[State::Dead], request.limit).await?;
        let mut tally = Tally::new(&matched, request.dry_run);
        if !request.dry_run {
            let delays = spread(over, matched.ids.len());
            let redrives: Vec<_> =
                matched.ids.iter().zip(delays).map(|(id, delay)| Redrive { id: *id, delay }).collect();
            for step in redrives.chunks(STEP_TASKS) {
                tally.add(self.store.redrive(step).await)?;
            }
        }
        Ok(tally.answer)
    }

    /// Removes every dead task that the filter matches, for good. One that blocks its workflow is refused.
    ///
    /// Not all or nothing: tasks are removed in steps, and the answer says how many were.
    pub async fn bulk_remove(&self, request: BulkRequest) -> Result<BulkResponse> {
        if request.filter.is_empty() {
            return Err(ErrorDetail::invalid("filter is empty: that would remove every dead task")
                .hint(format!("name at least one of {FILTER_FIELDS}")));
        }
        if let Some(state) = request.filter.state.filter(|state| *state != State::Dead) {
            return Err(ErrorDetail::invalid(format!(
                "state {state} cannot be removed; only dead tasks can"
            )));
        }
        if request.over_ms.is_some() || request.reason.is_some() {
            return Err(ErrorDetail::invalid("over_ms is for retry only, and reason for cancel"));
        }
        let matched = self.matching(request.filter, &[State::Dead], request.limit).await?;
        let mut tally = Tally::new(&matched, request.dry_run);
        if !request.dry_run {
            for step in matched.ids.chunks(STEP_TASKS) {
                tally.add(self.store.remove(step).await)?;
            }
        }
        Ok(tally.answer)
    }

    /// Removes the dead tasks of a queue.
    pub(super) async fn remove_dead_of(&self, queue: &Name, dry_run: bool) -> Result<BulkResponse> {
        self.bulk_remove(BulkRequest { filter: of_queue(queue), dry_run, ..BulkRequest::default() }).await
    }

    /// The ids that match. They are found first and changed afterwards: otherwise a retried task that dies
    /// again at once would be changed twice, and spreading the starts needs the number of tasks.
    async fn matching(&self, filter: TaskFilter, states: &[State], limit: Option<u32>) -> Result<Matched> {
        let limit = limit.unwrap_or(BULK_LIMIT_MAX);
        if limit == 0 || limit > BULK_LIMIT_MAX {
            return Err(ErrorDetail::invalid(format!("limit is {limit}; it must be 1 to {BULK_LIMIT_MAX}")));
        }
        let filter = filter.checked()?;
        let mut found = BTreeSet::new();
        for state in states {
            let filter = Filter { state: Some(*state), ..filter.clone() };
            let mut after = None;
            loop {
                let page = self.store.summaries(&filter, after, PAGE_MAX).await?;
                for task in page.tasks {
                    if found.len() as u32 >= limit && !found.contains(&task.id) {
                        return Ok(Matched { ids: found.into_iter().rev().collect(), more: true });
                    }
                    found.insert(task.id);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Matched { ids: found.into_iter().rev().collect(), more: false })
    }
}

fn of_queue(queue: &Name) -> TaskFilter {
    TaskFilter { queue: Some(queue.clone()), ..TaskFilter::default() }
}

/// The delays of `n` starts, spread evenly over a time; the first starts at once.
fn spread(over: Duration, n: usize) -> impl Iterator<Item = Duration> {
    let n = n.max(1) as u128;
    (0..n).map(move |place| Duration::from_millis((over.as_millis() * place / n) as u64))
}

/// Counts what the steps did.
struct Tally {
    answer: BulkResponse,
}

impl Tally {
    fn new(matched: &Matched, dry_run: bool) -> Self {
        let answer = BulkResponse {
            matched: matched.ids.len() as u64,
            more: matched.more,
            dry_run,
            ..BulkResponse::default()
        };
        Self { answer }
    }

    /// Adds one step. A step that fails ends the operation; the error says how many tasks were changed before
    /// it.
    fn add(&mut self, step: windlass_core::Result<Vec<Changed>>) -> Result<()> {
        let changed = step.map_err(|error| {
            let mut detail = ErrorDetail::from(error);
            detail.message = format!(
                "{} (after {} of {} tasks were changed)",
                detail.message, self.answer.changed, self.answer.matched
            );
            detail
        })?;
        for Changed { id, result } in changed {
            match result {
                Ok(_) => self.answer.changed += 1,
                Err(error) => {
                    self.answer.refused += 1;
                    if self.answer.refusals.len() < REFUSALS_MAX {
                        self.answer.refusals.push(Refusal { id, error: error.into() });
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_even_and_starts_at_once() {
        let delays: Vec<_> = spread(Duration::from_secs(10), 4).map(|delay| delay.as_millis()).collect();
        assert_eq!(delays, [0, 2_500, 5_000, 7_500]);
        assert_eq!(spread(Duration::ZERO, 3).sum::<Duration>(), Duration::ZERO);
    }
}
