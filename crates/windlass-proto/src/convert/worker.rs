//! Workers: how they introduce themselves, what they report, and how they are shown.

use std::time::Duration;

use windlass_core::{
    Error, LeaseRef, NewWorker, Timestamp, WorkerRecord, WorkerReport,
    source::{Reconciled, Renewed},
    worker::check_slots,
};

use super::{ms, names, task_id, texts, worker_id};
use crate::v1;

/// How long a worker is believed alive that does not say.
const LEASE_TTL: Duration = Duration::from_secs(10);

/// The figure that a `float` on the wire stands for: 0.42 stays 0.42.
pub fn exact(figure: f32) -> f64 {
    figure.to_string().parse().unwrap_or_else(|_| figure.into())
}

fn capacity(slots: u32) -> i32 {
    i32::try_from(slots).unwrap_or(i32::MAX)
}

fn count(capacity: i32) -> u32 {
    u32::try_from(capacity).unwrap_or(0)
}

impl From<NewWorker> for v1::RegisterRequest {
    fn from(worker: NewWorker) -> Self {
        Self {
            host: worker.host,
            pid: worker.pid,
            version: worker.version,
            kinds: texts(&worker.kinds),
            queues: texts(&worker.queues),
            max_capacity: capacity(worker.slots),
            lease_ttl_ms: ms(worker.lease_ttl),
        }
    }
}

impl TryFrom<v1::RegisterRequest> for NewWorker {
    type Error = Error;

    fn try_from(worker: v1::RegisterRequest) -> Result<Self, Error> {
        let slots = count(worker.max_capacity);
        check_slots(slots).map_err(|_| {
            Error::invalid(format!("max_capacity must be 1 or more, not {}", worker.max_capacity))
        })?;
        Ok(Self {
            host: worker.host,
            pid: worker.pid,
            version: worker.version,
            kinds: names("kind", &worker.kinds)?,
            queues: names("queue", &worker.queues)?,
            slots,
            lease_ttl: match worker.lease_ttl_ms {
                0 => LEASE_TTL,
                ms => Duration::from_millis(ms),
            },
        })
    }
}

/// What a heartbeat reports.
pub fn report(beat: &v1::HeartbeatRequest) -> WorkerReport {
    let available = count(beat.available_capacity);
    WorkerReport {
        available,
        in_flight: beat.in_flight.unwrap_or_else(|| count(beat.max_capacity).saturating_sub(available)),
        draining: beat.draining,
        memory_usage: exact(beat.memory_usage),
        factor: beat.factor.unwrap_or(1.0),
        reason: beat.reason.clone(),
    }
}

impl From<WorkerReport> for v1::HeartbeatRequest {
    fn from(report: WorkerReport) -> Self {
        Self {
            worker_id: String::new(),
            available_capacity: capacity(report.available),
            max_capacity: capacity(report.available.saturating_add(report.in_flight)),
            memory_usage: report.memory_usage as f32,
            in_flight: Some(report.in_flight),
            draining: report.draining,
            factor: Some(report.factor),
            reason: report.reason,
        }
    }
}

impl From<Renewed> for v1::HeartbeatResponse {
    fn from(renewed: Renewed) -> Self {
        let cancels = renewed.cancels.into_iter().map(|(lease, reason)| v1::Cancellation {
            task_id: lease.id.to_string(),
            lease: lease.lease,
            reason,
        });
        Self { cancels: cancels.collect(), max_capacity: renewed.slots, lease_epoch: renewed.epoch }
    }
}

impl TryFrom<v1::Cancellation> for (LeaseRef, String) {
    type Error = Error;

    fn try_from(cancel: v1::Cancellation) -> Result<Self, Error> {
        Ok((LeaseRef { id: task_id(&cancel.task_id)?, lease: cancel.lease }, cancel.reason))
    }
}

impl TryFrom<v1::HeartbeatResponse> for Renewed {
    type Error = Error;

    fn try_from(answer: v1::HeartbeatResponse) -> Result<Self, Error> {
        let cancels = answer.cancels.into_iter().map(TryInto::try_into);
        Ok(Self {
            cancels: cancels.collect::<Result<_, _>>()?,
            slots: answer.max_capacity,
            epoch: answer.lease_epoch,
        })
    }
}

impl From<Reconciled> for v1::ReconcileResponse {
    fn from(reconciled: Reconciled) -> Self {
        Self { tasks: reconciled.handed_back, lost: reconciled.lost.into_iter().map(Into::into).collect() }
    }
}

impl TryFrom<v1::ReconcileResponse> for Reconciled {
    type Error = Error;

    fn try_from(answer: v1::ReconcileResponse) -> Result<Self, Error> {
        let lost = answer.lost.into_iter().map(TryInto::try_into);
        Ok(Self { handed_back: answer.tasks, lost: lost.collect::<Result<_, _>>()? })
    }
}

impl From<WorkerRecord> for v1::Worker {
    fn from(worker: WorkerRecord) -> Self {
        Self {
            worker_id: worker.id.to_string(),
            host: worker.host,
            pid: worker.pid,
            version: worker.version,
            kinds: texts(&worker.kinds),
            queues: texts(&worker.queues),
            max_capacity: capacity(worker.slots),
            available_capacity: capacity(worker.available),
            in_flight: worker.in_flight,
            memory_usage: worker.memory_usage as f32,
            factor: worker.factor,
            reason: worker.reason,
            draining: worker.draining,
            live: worker.live,
            ended: worker.ended,
            registered_at_ms: worker.registered_at.as_ms(),
            renewed_at_ms: worker.renewed_at.as_ms(),
        }
    }
}

impl TryFrom<v1::Worker> for WorkerRecord {
    type Error = Error;

    fn try_from(worker: v1::Worker) -> Result<Self, Error> {
        Ok(Self {
            id: worker_id(&worker.worker_id)?,
            host: worker.host,
            pid: worker.pid,
            version: worker.version,
            kinds: names("kind", &worker.kinds)?,
            queues: names("queue", &worker.queues)?,
            slots: count(worker.max_capacity),
            in_flight: worker.in_flight,
            available: count(worker.available_capacity),
            draining: worker.draining,
            memory_usage: exact(worker.memory_usage),
            factor: worker.factor,
            reason: worker.reason,
            live: worker.live,
            ended: worker.ended,
            registered_at: Timestamp::from_ms(worker.registered_at_ms),
            renewed_at: Timestamp::from_ms(worker.renewed_at_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_memory_survives_the_narrow_field() {
        for figure in [0.0, 0.1, 0.42, 0.8, 1.0] {
            assert!((exact(figure as f32) - figure).abs() < f64::EPSILON, "{figure}");
        }
    }
}
