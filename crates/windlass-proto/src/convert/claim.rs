//! Claims: demands and claimed tasks.

use std::{sync::Arc, time::Duration};

use windlass_core::{
    ClaimAnswer, Claimed, Demand, Error, Lane, LaneId, LeaseRef, Name, Timestamp, TraceContext,
    affinity::Prefers, source::Rest,
};

use super::{ms, names, required, some_name, task_id, text, worker_id};
use crate::v1;

impl From<&Lane> for v1::Lane {
    fn from(lane: &Lane) -> Self {
        Self { id: lane.id.0, queue: lane.queue.to_string(), kind: lane.kind.to_string() }
    }
}

impl TryFrom<v1::Lane> for Lane {
    type Error = Error;

    fn try_from(lane: v1::Lane) -> Result<Self, Error> {
        Ok(Self {
            id: LaneId(lane.id),
            queue: Name::stored("queue", lane.queue)?,
            kind: Name::stored("kind", lane.kind)?,
        })
    }
}

impl From<Claimed> for v1::ClaimedTask {
    fn from(task: Claimed) -> Self {
        let lease = v1::Lease {
            task_id: task.id.to_string(),
            lease: task.lease,
            worker_id: task.worker.to_string(),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            retry: task.retry.map(Into::into),
            job: text(task.job.as_ref()),
            workflow: text(task.workflow.as_ref()),
        };
        Self {
            lease: Some(lease),
            lane: Some((&*task.lane).into()),
            payload: Some(task.payload.into()),
            priority: task.priority,
            crashes: task.crashes,
            claim_no: task.claim_no,
            timeout_ms: task.timeout.map(ms),
            traceparent: task.trace.map(|trace| trace.to_string()).unwrap_or_default(),
            claimed_at_ms: task.claimed_at.as_ms(),
        }
    }
}

impl TryFrom<v1::ClaimedTask> for Claimed {
    type Error = Error;

    fn try_from(task: v1::ClaimedTask) -> Result<Self, Error> {
        let lease = required("lease", task.lease)?;
        Ok(Self {
            id: task_id(&lease.task_id)?,
            lease: lease.lease,
            attempt: lease.attempt,
            max_attempts: lease.max_attempts,
            crashes: task.crashes,
            worker: worker_id(&lease.worker_id)?,
            claim_no: task.claim_no,
            lane: Arc::new(required("lane", task.lane)?.try_into()?),
            priority: task.priority,
            payload: required("payload", task.payload)?.into(),
            job: some_name("job", &lease.job)?,
            workflow: some_name("workflow", &lease.workflow)?,
            timeout: task.timeout_ms.map(Duration::from_millis),
            retry: lease.retry.map(Into::into),
            trace: TraceContext::from_stored(Some(&task.traceparent)),
            claimed_at: Timestamp::from_ms(task.claimed_at_ms),
        })
    }
}

impl From<&Demand> for v1::Demand {
    fn from(demand: &Demand) -> Self {
        Self {
            worker_id: demand.worker.to_string(),
            claim_no: demand.claim_no,
            lanes: demand.lanes.iter().map(|lane| lane.0).collect(),
            max_tasks: demand.n,
            prefers: demand.prefers.workflows().iter().map(Name::to_string).collect(),
        }
    }
}

impl TryFrom<v1::Demand> for Demand {
    type Error = Error;

    fn try_from(demand: v1::Demand) -> Result<Self, Error> {
        Ok(Self {
            worker: worker_id(&demand.worker_id)?,
            claim_no: demand.claim_no,
            lanes: demand.lanes.into_iter().map(LaneId).collect(),
            n: demand.max_tasks,
            prefers: Prefers::Workflows(names("workflow", &demand.prefers)?.into()),
            waits: false,
        })
    }
}

impl From<ClaimAnswer> for v1::ClaimForResponse {
    fn from(answer: ClaimAnswer) -> Self {
        let rest = match answer.rest {
            Rest::More => v1::Rest::More,
            Rest::Nothing => v1::Rest::Nothing,
            Rest::Blocked => v1::Rest::Blocked,
        };
        Self {
            tasks: answer.tasks.into_iter().map(Into::into).collect(),
            rest: rest.into(),
            next_due_ms: answer.next_due.map(Timestamp::as_ms),
            now_ms: answer.now.as_ms(),
        }
    }
}

impl TryFrom<v1::ClaimForResponse> for ClaimAnswer {
    type Error = Error;

    fn try_from(answer: v1::ClaimForResponse) -> Result<Self, Error> {
        Ok(Self {
            rest: match answer.rest() {
                v1::Rest::More => Rest::More,
                v1::Rest::Nothing => Rest::Nothing,
                v1::Rest::Blocked => Rest::Blocked,
            },
            tasks: answer.tasks.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            next_due: answer.next_due_ms.map(Timestamp::from_ms),
            now: Timestamp::from_ms(answer.now_ms),
        })
    }
}

impl From<LeaseRef> for v1::Held {
    fn from(lease: LeaseRef) -> Self {
        Self { task_id: lease.id.to_string(), lease: lease.lease }
    }
}

impl TryFrom<v1::Held> for LeaseRef {
    type Error = Error;

    fn try_from(held: v1::Held) -> Result<Self, Error> {
        Ok(Self { id: task_id(&held.task_id)?, lease: held.lease })
    }
}
