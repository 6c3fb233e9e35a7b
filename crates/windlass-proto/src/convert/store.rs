//! Messages that the runtime needs beyond the public calls.

use std::time::Duration;

use windlass_core::{
    Error, Fire, Hint, LaneId, Name, Rules, ScheduleRow, Timestamp,
    schedule::DueSchedules,
    source::DutyReport,
    store::{Finding, Retention, StoreInfo},
    usage::ReadyLines,
};

use super::{id_text, ms, required, some_task_id, worker_id};
use crate::v1::{self, hint::Hint as Message, ready_lines::Head};

impl From<&Rules> for v1::Rules {
    fn from(rules: &Rules) -> Self {
        Self {
            max_attempts: rules.max_attempts,
            max_crashes: rules.max_crashes,
            payload_max_bytes: rules.payload_max_bytes as u64,
            output_max_bytes: rules.output_max_bytes as u64,
            error_max_bytes: rules.error_max_bytes as u64,
            batch_max: rules.batch_max as u64,
            idempotency_ttl_ms: ms(rules.idempotency_ttl),
            retry: Some(rules.retry.into()),
            job_default_concurrency: rules.job_default_concurrency,
        }
    }
}

impl TryFrom<v1::Rules> for Rules {
    type Error = Error;

    fn try_from(rules: v1::Rules) -> Result<Self, Error> {
        Ok(Self {
            max_attempts: rules.max_attempts,
            max_crashes: rules.max_crashes,
            payload_max_bytes: rules.payload_max_bytes as usize,
            output_max_bytes: rules.output_max_bytes as usize,
            error_max_bytes: rules.error_max_bytes as usize,
            batch_max: rules.batch_max as usize,
            idempotency_ttl: Duration::from_millis(rules.idempotency_ttl_ms),
            retry: required("retry", rules.retry)?.into(),
            job_default_concurrency: rules.job_default_concurrency,
            // The server bounds the lanes; a client has no part in it.
            lanes_max: Self::default().lanes_max,
        })
    }
}

impl From<StoreInfo> for v1::Info {
    fn from(info: StoreInfo) -> Self {
        Self {
            backend: info.backend,
            location: info.location,
            engine_version: info.engine_version,
            schema_version: info.schema_version,
            bytes: info.bytes,
            wal_bytes: info.wal_bytes,
            free_disk_bytes: info.free_disk_bytes,
            history_rows: info.history_rows,
            history_bytes: info.history_bytes,
            durable: info.durable,
            created: info.created,
            recovered: info.recovered,
        }
    }
}

impl From<v1::Info> for StoreInfo {
    fn from(info: v1::Info) -> Self {
        Self {
            backend: info.backend,
            location: info.location,
            engine_version: info.engine_version,
            schema_version: info.schema_version,
            bytes: info.bytes,
            wal_bytes: info.wal_bytes,
            free_disk_bytes: info.free_disk_bytes,
            history_rows: info.history_rows,
            history_bytes: info.history_bytes,
            durable: info.durable,
            created: info.created,
            recovered: info.recovered,
        }
    }
}

impl From<DutyReport> for v1::DutyReport {
    fn from(report: DutyReport) -> Self {
        Self {
            moved: report.moved,
            workers: report.workers.iter().map(ToString::to_string).collect(),
            lanes_ready: report.lanes_ready.into_iter().map(|lane| lane.0).collect(),
            next_due_ms: report.next_due.map(Timestamp::as_ms),
            more: report.more,
        }
    }
}

impl TryFrom<v1::DutyReport> for DutyReport {
    type Error = Error;

    fn try_from(report: v1::DutyReport) -> Result<Self, Error> {
        Ok(Self {
            moved: report.moved,
            workers: report.workers.iter().map(|id| worker_id(id)).collect::<Result<_, _>>()?,
            lanes_ready: report.lanes_ready.into_iter().map(LaneId).collect(),
            next_due: report.next_due_ms.map(Timestamp::from_ms),
            more: report.more,
        })
    }
}

impl From<&Retention> for v1::Retention {
    fn from(retention: &Retention) -> Self {
        Self {
            history_age_ms: ms(retention.history_age),
            history_max_bytes: retention.history_max_bytes,
            dead_age_ms: ms(retention.dead_age),
        }
    }
}

impl From<v1::Retention> for Retention {
    fn from(retention: v1::Retention) -> Self {
        Self {
            history_age: Duration::from_millis(retention.history_age_ms),
            history_max_bytes: retention.history_max_bytes,
            dead_age: Duration::from_millis(retention.dead_age_ms),
        }
    }
}

impl From<Hint> for v1::Hint {
    fn from(hint: Hint) -> Self {
        let message = match hint {
            // Each worker learns of its own lost leases when it compares them.
            Hint::Ready | Hint::Lost(_) => Message::Ready(v1::hint::Ready {}),
            Hint::Due(at) => Message::DueMs(at.as_ms()),
            Hint::Lanes => Message::Lanes(v1::hint::LanesChanged {}),
            Hint::Cancel(lease, reason) => Message::Cancel(v1::Cancellation {
                task_id: lease.id.to_string(),
                lease: lease.lease,
                reason,
            }),
        };
        Self { hint: Some(message) }
    }
}

/// The hint of a message; `None` for a message that only says that the stream is open, or that this version
/// does not know.
pub fn hint(message: v1::Hint) -> Option<Hint> {
    match message.hint? {
        Message::Ready(_) => Some(Hint::Ready),
        Message::DueMs(at) => Some(Hint::Due(Timestamp::from_ms(at))),
        Message::Lanes(_) => Some(Hint::Lanes),
        Message::Cancel(cancel) => {
            let (lease, reason) = cancel.try_into().ok()?;
            Some(Hint::Cancel(lease, reason))
        }
        Message::Listening(_) => None,
    }
}

impl From<Finding> for v1::Finding {
    fn from(finding: Finding) -> Self {
        Self { task_id: id_text(finding.task), promise: finding.promise, detail: finding.detail }
    }
}

impl TryFrom<v1::Finding> for Finding {
    type Error = Error;

    fn try_from(finding: v1::Finding) -> Result<Self, Error> {
        let task = some_task_id(&finding.task_id)?;
        Ok(Self { task, promise: finding.promise, detail: finding.detail })
    }
}

impl From<ReadyLines> for v1::ReadyLines {
    fn from(lines: ReadyLines) -> Self {
        let head = |(lane, queue, place): (LaneId, Name, i64)| Head {
            lane: lane.0,
            queue: queue.to_string(),
            place,
        };
        Self { last: lines.last, heads: lines.heads.into_iter().map(head).collect() }
    }
}

impl TryFrom<v1::ReadyLines> for ReadyLines {
    type Error = Error;

    fn try_from(lines: v1::ReadyLines) -> Result<Self, Error> {
        let head = |head: Head| Ok((LaneId(head.lane), Name::stored("queue", head.queue)?, head.place));
        Ok(Self { last: lines.last, heads: lines.heads.into_iter().map(head).collect::<Result<_, Error>>()? })
    }
}

impl From<ScheduleRow> for v1::Schedule {
    fn from(row: ScheduleRow) -> Self {
        Self {
            name: row.name.to_string(),
            spec: row.spec,
            paused: row.paused,
            next_at_ms: row.next_at.map(Timestamp::as_ms),
            last_at_ms: row.last_at.map(Timestamp::as_ms),
            last_task: id_text(row.last_task),
        }
    }
}

impl TryFrom<v1::Schedule> for ScheduleRow {
    type Error = Error;

    fn try_from(row: v1::Schedule) -> Result<Self, Error> {
        Ok(Self {
            name: Name::stored("schedule", row.name)?,
            spec: row.spec,
            paused: row.paused,
            next_at: row.next_at_ms.map(Timestamp::from_ms),
            last_at: row.last_at_ms.map(Timestamp::from_ms),
            last_task: some_task_id(&row.last_task)?,
        })
    }
}

impl From<DueSchedules> for v1::DueSchedulesResponse {
    fn from(due: DueSchedules) -> Self {
        Self {
            now_ms: due.now.as_ms(),
            due: due.due.into_iter().map(Into::into).collect(),
            next_at_ms: due.next_at.map(Timestamp::as_ms),
        }
    }
}

impl TryFrom<v1::DueSchedulesResponse> for DueSchedules {
    type Error = Error;

    fn try_from(due: v1::DueSchedulesResponse) -> Result<Self, Error> {
        Ok(Self {
            now: Timestamp::from_ms(due.now_ms),
            due: due.due.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            next_at: due.next_at_ms.map(Timestamp::from_ms),
        })
    }
}

impl From<Fire> for v1::FireScheduleRequest {
    fn from(fire: Fire) -> Self {
        Self {
            name: fire.name.to_string(),
            tick_ms: fire.tick.as_ms(),
            task: fire.task.map(Into::into),
            next_at_ms: fire.next_at.map(Timestamp::as_ms),
        }
    }
}
