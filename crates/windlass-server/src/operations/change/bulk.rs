//! Cancel, retry and removal of everything that a filter matches, in bounded steps.

use std::{collections::BTreeSet, time::Duration};

use windlass_core::{
    Name, State, TaskId,
    store::{Changed, Filter, PAGE_MAX, Redrive, SummaryRecord},
};

use crate::{
    api::{
        BULK_LIMIT_MAX, BulkRequest, BulkResponse, ErrorDetail, FILTER_FIELDS, REFUSALS_MAX, Refusal,
        RunAction, TaskFilter,
    },
    operations::{Operations, Result, duration},
};

/// Tasks changed in one transaction: short enough that workers do not notice.
pub(in crate::operations) const STEP_TASKS: usize = 500;

/// The tasks that matched.
pub(in crate::operations) struct Matched {
    /// Newest first.
    pub(in crate::operations) ids: Vec<TaskId>,
    /// Whether the limit was reached.
    pub(in crate::operations) more: bool,
    /// A few of them.
    pub(in crate::operations) sample: Vec<SummaryRecord>,
}

/// Most tasks of a sample.
const SAMPLE_MAX: usize = 5;

/// The states of the tasks that an action is about, in the order in which tasks move through them.
///
/// # Errors
/// `invalid` if the filter is empty and the action could not be undone, or it is about other tasks.
pub(in crate::operations) fn states(
    action: RunAction,
    filter: &TaskFilter,
    reason: Option<&str>,
) -> Result<Vec<State>> {
    let empty = |what: &str| {
        ErrorDetail::invalid(format!("filter is empty: that would {what}"))
            .hint(format!("name at least one of {FILTER_FIELDS}"))
    };
    if reason.is_some() && action != RunAction::Cancel {
        return Err(ErrorDetail::invalid("reason is for cancel only"));
    }
    let other = filter.state.filter(|state| *state != State::Dead);
    match (action, other) {
        (RunAction::Cancel, _) if filter.is_empty() => Err(empty("cancel everything")),
        (RunAction::Remove, _) if filter.is_empty() => Err(empty("remove every dead task")),
        (RunAction::Cancel, state) => {
            if let Some(state) = filter.state.filter(|state| state.is_ended()) {
                return Err(ErrorDetail::invalid(format!("state {state} has ended; it cannot be cancelled")));
            }
            if filter.cause.is_some() {
                return Err(ErrorDetail::invalid("cause is of dead tasks; they cannot be cancelled"));
            }
            Ok(state.map_or_else(
                || State::ALL.into_iter().filter(|state| !state.is_ended()).collect(),
                |state| vec![state],
            ))
        }
        (RunAction::Retry, Some(state)) => Err(ErrorDetail::invalid(format!(
            "state {state} cannot be retried by filter; only dead tasks can"
        ))
        .hint("repeat a done or cancelled task by its id: `windlass tasks retry ID`")),
        (RunAction::Remove, Some(state)) => {
            Err(ErrorDetail::invalid(format!("state {state} cannot be removed; only dead tasks can")))
        }
        (RunAction::Retry | RunAction::Remove, None) => Ok(vec![State::Dead]),
    }
}

impl Operations {
    /// Cancels every unfinished task that the filter matches.
    ///
    /// Not all or nothing: tasks are cancelled in steps, and the answer says how many were.
    pub async fn bulk_cancel(&self, request: BulkRequest) -> Result<BulkResponse> {
        let states = states(RunAction::Cancel, &request.filter, request.reason.as_deref())?;
        self.change_all(RunAction::Cancel, request, &states).await
    }

    /// Gives every dead task that the filter matches a fresh budget; their starts are spread over `over_ms`.
    ///
    /// Not all or nothing: tasks are changed in steps, and the answer says how many were.
    pub async fn bulk_retry(&self, request: BulkRequest) -> Result<BulkResponse> {
        let states = states(RunAction::Retry, &request.filter, request.reason.as_deref())?;
        self.change_all(RunAction::Retry, request, &states).await
    }

    /// Removes every dead task that the filter matches, for good. One that blocks its workflow is refused.
    ///
    /// Not all or nothing: tasks are removed in steps, and the answer says how many were.
    pub async fn bulk_remove(&self, request: BulkRequest) -> Result<BulkResponse> {
        let states = states(RunAction::Remove, &request.filter, request.reason.as_deref())?;
        self.change_all(RunAction::Remove, request, &states).await
    }

    /// Cancels the tasks of a queue that have not started.
    pub(in crate::operations) async fn cancel_waiting(
        &self,
        queue: &Name,
        reason: String,
        dry_run: bool,
    ) -> Result<BulkResponse> {
        let request =
            BulkRequest { filter: of_queue(queue), dry_run, reason: Some(reason), ..BulkRequest::default() };
        let states = State::ALL.into_iter().filter(|state| !state.is_ended() && *state != State::Running);
        self.change_all(RunAction::Cancel, request, &states.collect::<Vec<_>>()).await
    }

    async fn change_all(
        &self,
        action: RunAction,
        request: BulkRequest,
        states: &[State],
    ) -> Result<BulkResponse> {
        if request.over_ms.is_some() && action != RunAction::Retry {
            return Err(ErrorDetail::invalid("over_ms is for retry only")
                .hint("POST /v1/runs spreads every action over a time"));
        }
        let over = duration("over_ms", request.over_ms.unwrap_or(0))?;
        let matched = self.matching(request.filter, states, request.limit).await?;
        let mut tally = Tally::new(&matched, request.dry_run);
        if request.dry_run {
            return Ok(tally.answer);
        }
        if over.is_zero() {
            for step in matched.ids.chunks(STEP_TASKS) {
                tally.add(self.change_many(action, step, request.reason.as_deref()).await)?;
            }
            return Ok(tally.answer);
        }
        let delays = spread(over, matched.ids.len());
        let redrives: Vec<_> =
            matched.ids.iter().zip(delays).map(|(id, delay)| Redrive { id: *id, delay }).collect();
        for step in redrives.chunks(STEP_TASKS) {
            tally.add(self.store.redrive(step).await)?;
        }
        Ok(tally.answer)
    }

    /// Does one action to tasks, in one call of the store.
    pub(in crate::operations) async fn change_many(
        &self,
        action: RunAction,
        ids: &[TaskId],
        reason: Option<&str>,
    ) -> windlass_core::Result<Vec<Changed>> {
        match action {
            RunAction::Cancel => self.store.cancel(ids, &self.reason(reason)).await,
            RunAction::Remove => self.store.remove(ids).await,
            RunAction::Retry => {
                let now = |id: &TaskId| Redrive { id: *id, delay: Duration::ZERO };
                self.store.redrive(&ids.iter().map(now).collect::<Vec<_>>()).await
            }
        }
    }

    /// Removes the dead tasks of a queue.
    pub(in crate::operations) async fn remove_dead_of(
        &self,
        queue: &Name,
        dry_run: bool,
    ) -> Result<BulkResponse> {
        self.bulk_remove(BulkRequest { filter: of_queue(queue), dry_run, ..BulkRequest::default() }).await
    }

    /// The tasks that match. They are found first and changed afterwards: otherwise a retried task that dies
    /// again at once would be changed twice, and spreading the starts needs the number of tasks.
    pub(in crate::operations) async fn matching(
        &self,
        filter: TaskFilter,
        states: &[State],
        limit: Option<u32>,
    ) -> Result<Matched> {
        let limit = limit.unwrap_or(BULK_LIMIT_MAX);
        if limit == 0 || limit > BULK_LIMIT_MAX {
            return Err(ErrorDetail::invalid(format!("limit is {limit}; it must be 1 to {BULK_LIMIT_MAX}")));
        }
        let filter = filter.checked()?;
        let (mut found, mut sample) = (BTreeSet::new(), Vec::new());
        let newest = |found: BTreeSet<TaskId>| found.into_iter().rev().collect();
        for state in states {
            let filter = Filter { state: Some(*state), ..filter.clone() };
            let mut after = None;
            loop {
                let page = self.store.summaries(&filter, after, PAGE_MAX).await?;
                for task in page.tasks {
                    if found.len() as u32 >= limit && !found.contains(&task.id) {
                        return Ok(Matched { ids: newest(found), more: true, sample });
                    }
                    if found.insert(task.id) && sample.len() < SAMPLE_MAX {
                        sample.push(task);
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Matched { ids: newest(found), more: false, sample })
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
