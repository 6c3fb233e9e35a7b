//! Workers: registrations, reports and records.

use std::time::Duration;

use windlass_core::{
    Counts, Error, LeaseRef, Name, NewWorker, Timestamp, WorkerCounts, WorkerRecord, WorkerReport,
    source::{Reconciled, Renewed},
    worker::{LEASE_TTL_MAX, check_slots},
};

use super::{ms, names, task_id, texts, worker_id};
use crate::v1;

/// The lease time of a worker that names none.
const LEASE_TTL: Duration = Duration::from_secs(10);

/// Longest text of a worker's registration; the rest is cut.
const TEXT_MAX: usize = 255;
/// Most kinds and most queues of a worker: stores have no more lanes than this.
const NAMES_MAX: usize = 10_000;

/// A text for display, cut to the length that a store keeps.
fn clipped(text: String) -> String {
    if text.len() <= TEXT_MAX && !text.contains('\0') {
        return text;
    }
    text.replace('\0', "\u{fffd}").chars().take(TEXT_MAX).collect()
}

/// A share that can be stored: a finite number within bounds.
fn share(figure: f64, otherwise: f64) -> f64 {
    if figure.is_finite() { figure.clamp(0.0, 1_000.0) } else { otherwise }
}

/// The decimal number that a `float` in a message stands for: 0.42 stays 0.42.
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
        let lease_ttl = match worker.lease_ttl_ms {
            0 => LEASE_TTL,
            ms => Duration::from_millis(ms),
        };
        if lease_ttl > LEASE_TTL_MAX {
            let most = LEASE_TTL_MAX.as_millis();
            return Err(Error::invalid(format!(
                "lease_ttl_ms must be at most {most}, not {}",
                ms(lease_ttl)
            )));
        }
        for (what, names) in [("kinds", &worker.kinds), ("queues", &worker.queues)] {
            if names.len() > NAMES_MAX {
                return Err(Error::invalid(format!("{what} has {} names; at most {NAMES_MAX}", names.len())));
            }
        }
        let (kinds, queues) = (names("kind", &worker.kinds)?, names("queue", &worker.queues)?);
        kinds.iter().try_for_each(|kind| kind.check("kind"))?;
        queues.iter().try_for_each(|queue| queue.check("queue"))?;
        Ok(Self {
            host: clipped(worker.host),
            pid: worker.pid,
            version: clipped(worker.version),
            kinds,
            queues,
            slots,
            lease_ttl,
        })
    }
}

/// What a heartbeat reports.
pub fn report(beat: &v1::HeartbeatRequest) -> WorkerReport {
    let available = count(beat.available_capacity);
    let in_flight = beat.in_flight.unwrap_or_else(|| count(beat.max_capacity).saturating_sub(available));
    WorkerReport {
        available,
        // At most as many as the capacity field can hold.
        in_flight: in_flight.min(i32::MAX as u32),
        draining: beat.draining,
        memory_usage: share(exact(beat.memory_usage), 0.0),
        factor: share(beat.factor.unwrap_or(1.0), 1.0),
        reason: clipped(beat.reason.clone()),
        counts: worker_counts(&beat.counts),
    }
}

/// Most of anything that a worker is believed to have done: ten thousand slots that are busy for 14 years, in
/// milliseconds. Readers add up the figures of all workers, and an absurd one must not use up the range of a sum.
const FIGURE_MAX: u64 = 1 << 52;

/// What a worker says it has done. Names that no queue can have are counted with the rest.
fn worker_counts(said: &[v1::QueueCounts]) -> WorkerCounts {
    let mut counts = WorkerCounts::default();
    for said in said.iter().take(NAMES_MAX) {
        let place = match Name::stored("queue", &said.queue) {
            Ok(queue) => counts.of(&queue),
            Err(_) => &mut counts.rest,
        };
        *place += figures(said);
        *place = place.at_most(FIGURE_MAX);
    }
    counts
}

fn figures(said: &v1::QueueCounts) -> Counts {
    Counts {
        started: said.started,
        done: said.done,
        retried: said.retried,
        dead: said.dead,
        cancelled: said.cancelled,
        returned: said.returned,
        busy_ms: said.busy_ms,
    }
}

fn queue_counts(counts: &WorkerCounts) -> Vec<v1::QueueCounts> {
    let entry = |queue: &str, counts: Counts| v1::QueueCounts {
        queue: queue.to_owned(),
        started: counts.started,
        done: counts.done,
        retried: counts.retried,
        dead: counts.dead,
        cancelled: counts.cancelled,
        returned: counts.returned,
        busy_ms: counts.busy_ms,
    };
    let mut entries: Vec<_> =
        counts.queues.iter().map(|(queue, counts)| entry(queue.as_str(), *counts)).collect();
    if !counts.rest.is_zero() {
        entries.push(entry("", counts.rest));
    }
    entries
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
            counts: queue_counts(&report.counts),
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
            counts: queue_counts(&worker.counts),
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
            counts: worker_counts(&worker.counts),
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
    fn the_texts_of_a_registration_are_bounded() {
        let said = v1::RegisterRequest {
            host: "h\0".repeat(10_000),
            max_capacity: 1,
            kinds: vec!["a".into()],
            ..v1::RegisterRequest::default()
        };
        let worker = NewWorker::try_from(said.clone()).unwrap();
        assert!(worker.host.chars().count() <= TEXT_MAX && !worker.host.contains('\0'));
        for bad in [
            v1::RegisterRequest { lease_ttl_ms: u64::MAX, ..said.clone() },
            v1::RegisterRequest { kinds: vec!["a".into(); NAMES_MAX + 1], ..said.clone() },
            v1::RegisterRequest { max_capacity: -1, ..said },
        ] {
            NewWorker::try_from(bad).unwrap_err();
        }
        let beat = v1::HeartbeatRequest {
            memory_usage: f32::NAN,
            factor: Some(f64::INFINITY),
            in_flight: Some(u32::MAX),
            reason: "r".repeat(1_000),
            counts: (0..100)
                .map(|n| v1::QueueCounts { queue: format!("q{n}\0"), done: 1, ..Default::default() })
                .collect(),
            ..v1::HeartbeatRequest::default()
        };
        let report = report(&beat);
        assert_eq!((report.memory_usage, report.factor, report.in_flight), (0.0, 1.0, i32::MAX as u32));
        assert_eq!(report.reason.len(), TEXT_MAX);
        assert_eq!(
            (report.counts.queues.len(), report.counts.rest.done),
            (0, 100),
            "no queue has such a name"
        );
    }

    #[test]
    fn an_absurd_count_of_a_worker_is_cut() {
        let said = |queue: &str| v1::QueueCounts {
            queue: queue.to_owned(),
            done: u64::MAX,
            busy_ms: FIGURE_MAX - 1,
            ..Default::default()
        };
        let counts = worker_counts(&[said("mail"), said("\0"), said("mail")]);
        let mail = counts.queues.values().next().unwrap();
        assert_eq!([mail.done, mail.busy_ms, mail.started], [FIGURE_MAX, FIGURE_MAX, 0]);
        assert_eq!([counts.rest.done, counts.rest.busy_ms], [FIGURE_MAX, FIGURE_MAX - 1]);
    }

    #[test]
    fn a_share_of_memory_is_exact_in_a_float_field() {
        for figure in [0.0, 0.1, 0.42, 0.8, 1.0] {
            assert!((exact(figure as f32) - figure).abs() < f64::EPSILON, "{figure}");
        }
    }
}
