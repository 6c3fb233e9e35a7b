//! Tasks for display.

use std::{sync::Arc, time::Duration};

use windlass_core::{
    AttemptRecord, Error, Name, State, TaskRecord, Timestamp,
    store::{Changed, Filter, SummaryRecord},
    task::AttemptResult,
};

use super::{error_of, id_text, message_of, ms, required, some_name, some_worker_id, task_id, text};
use crate::v1;

impl From<TaskRecord> for v1::Task {
    fn from(task: TaskRecord) -> Self {
        Self {
            id: task.id.to_string(),
            state: v1::TaskState::from(task.state).into(),
            lane: Some((&*task.lane).into()),
            priority: task.priority,
            payload: Some(task.payload.into()),
            job: text(task.job.as_ref()),
            workflow: text(task.workflow.as_ref()),
            key: task.key,
            lease: task.lease,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            crashes: task.crashes,
            timeout_ms: task.timeout.map(ms),
            due_at_ms: task.due_at.map(Timestamp::as_ms),
            started_at_ms: task.started_at.map(Timestamp::as_ms),
            ended_at_ms: task.ended_at.map(Timestamp::as_ms),
            worker_id: id_text(task.worker),
            progress: task.progress,
            output: task.output.map(Into::into),
            error: task.error,
            cancel_requested: task.cancel_requested,
            attempts: task.attempts.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Task> for TaskRecord {
    type Error = Error;

    fn try_from(task: v1::Task) -> Result<Self, Error> {
        Ok(Self {
            state: required("state", task.state().known())?,
            id: task_id(&task.id)?,
            lane: Arc::new(required("lane", task.lane)?.try_into()?),
            priority: task.priority,
            payload: required("payload", task.payload)?.into(),
            job: some_name("job", &task.job)?,
            workflow: some_name("workflow", &task.workflow)?,
            key: task.key,
            lease: task.lease,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            crashes: task.crashes,
            timeout: task.timeout_ms.map(Duration::from_millis),
            due_at: task.due_at_ms.map(Timestamp::from_ms),
            started_at: task.started_at_ms.map(Timestamp::from_ms),
            ended_at: task.ended_at_ms.map(Timestamp::from_ms),
            worker: some_worker_id(&task.worker_id)?,
            progress: task.progress,
            output: task.output.map(Into::into),
            error: task.error,
            cancel_requested: task.cancel_requested,
            attempts: task.attempts.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

/// A summary is a task without payload, output and attempts.
impl From<SummaryRecord> for v1::Task {
    fn from(task: SummaryRecord) -> Self {
        Self {
            id: task.id.to_string(),
            state: v1::TaskState::from(task.state).into(),
            lane: Some((&*task.lane).into()),
            priority: task.priority,
            job: text(task.job.as_ref()),
            workflow: text(task.workflow.as_ref()),
            key: task.key,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            due_at_ms: task.due_at.map(Timestamp::as_ms),
            started_at_ms: task.started_at.map(Timestamp::as_ms),
            ended_at_ms: task.ended_at.map(Timestamp::as_ms),
            worker_id: id_text(task.worker),
            progress: task.progress,
            error: task.error,
            cancel_requested: task.cancel_requested,
            ..Self::default()
        }
    }
}

impl TryFrom<v1::Task> for SummaryRecord {
    type Error = Error;

    fn try_from(task: v1::Task) -> Result<Self, Error> {
        let payload = Some(v1::Payload::default());
        TaskRecord::try_from(v1::Task { payload, ..task }).map(Into::into)
    }
}

/// Every result of an attempt with its message.
const RESULTS: [(AttemptResult, v1::AttemptResult); 8] = [
    (AttemptResult::Done, v1::AttemptResult::Done),
    (AttemptResult::Retry, v1::AttemptResult::Retry),
    (AttemptResult::Snoozed, v1::AttemptResult::Snoozed),
    (AttemptResult::Released, v1::AttemptResult::Released),
    (AttemptResult::Crashed, v1::AttemptResult::Crashed),
    (AttemptResult::Cancelled, v1::AttemptResult::Cancelled),
    (AttemptResult::Dead, v1::AttemptResult::Dead),
    (AttemptResult::Redriven, v1::AttemptResult::Redriven),
];

impl From<AttemptRecord> for v1::Attempt {
    fn from(attempt: AttemptRecord) -> Self {
        let result = RESULTS.iter().find(|(result, _)| *result == attempt.result);
        Self {
            attempt: attempt.attempt,
            lease: attempt.lease,
            worker_id: id_text(attempt.worker),
            started_at_ms: attempt.started_at.map(Timestamp::as_ms),
            ended_at_ms: attempt.ended_at.as_ms(),
            result: result.map_or(v1::AttemptResult::Unspecified, |(_, message)| *message).into(),
            error: attempt.error,
        }
    }
}

impl TryFrom<v1::Attempt> for AttemptRecord {
    type Error = Error;

    fn try_from(attempt: v1::Attempt) -> Result<Self, Error> {
        let result = RESULTS.iter().find(|(_, message)| *message == attempt.result());
        Ok(Self {
            result: required("result", result.map(|(result, _)| *result))?,
            attempt: attempt.attempt,
            lease: attempt.lease,
            worker: some_worker_id(&attempt.worker_id)?,
            started_at: attempt.started_at_ms.map(Timestamp::from_ms),
            ended_at: Timestamp::from_ms(attempt.ended_at_ms),
            error: attempt.error,
        })
    }
}

impl TryFrom<&v1::ListTasksRequest> for Filter {
    type Error = Error;

    fn try_from(request: &v1::ListTasksRequest) -> Result<Self, Error> {
        let ids = request.task_ids.iter().map(|id| task_id(id)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            state: request.state().known(),
            kind: some_name("kind", &request.kind)?,
            queue: some_name("queue", &request.queue)?,
            job: some_name("job", &request.job)?,
            workflow: some_name("workflow", &request.workflow)?,
            since: request.since_ms.map(Timestamp::from_ms),
            until: request.until_ms.map(Timestamp::from_ms),
            cause: request.cause.clone(),
            worker: some_worker_id(&request.worker_id)?,
            key: request.key.clone(),
            ids: if ids.is_empty() { None } else { Some(ids) },
        })
    }
}

impl From<&Filter> for v1::ListTasksRequest {
    fn from(filter: &Filter) -> Self {
        let name = |name: &Option<Name>| text(name.as_ref());
        Self {
            state: filter.state.map_or(v1::TaskState::Unspecified, Into::into).into(),
            kind: name(&filter.kind),
            queue: name(&filter.queue),
            job: name(&filter.job),
            workflow: name(&filter.workflow),
            since_ms: filter.since.map(Timestamp::as_ms),
            until_ms: filter.until.map(Timestamp::as_ms),
            cause: filter.cause.clone(),
            worker_id: id_text(filter.worker),
            key: filter.key.clone(),
            task_ids: filter.ids.iter().flatten().map(ToString::to_string).collect(),
            summary: false,
            after: String::new(),
            limit: 0,
        }
    }
}

impl From<Changed> for v1::ChangedTask {
    fn from(changed: Changed) -> Self {
        let state = changed.result.as_ref().ok().copied();
        Self {
            task_id: changed.id.to_string(),
            state: state.map_or(v1::TaskState::Unspecified, Into::into).into(),
            error: changed.result.err().as_ref().map(message_of),
        }
    }
}

impl TryFrom<v1::ChangedTask> for Changed {
    type Error = Error;

    fn try_from(changed: v1::ChangedTask) -> Result<Self, Error> {
        let state = changed.state().known();
        let result: Result<State, Error> = match changed.error {
            Some(error) => Err(error_of(&error)),
            None => Ok(required("state", state)?),
        };
        Ok(Self { id: task_id(&changed.task_id)?, result })
    }
}
