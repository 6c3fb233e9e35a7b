//! Consumers of RabbitMQ: what their processes report is kept in memory for a while.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use windlass::telemetry::{ConsumerReading, ConsumerSource};
use windlass_core::{Name, Timestamp};

use super::{Operations, Result, now};
use crate::api::{
    ConsumerProcess, ConsumerReport, ConsumerState, ConsumerView, Consumers, ConsumersReported, ErrorCode,
    ErrorDetail,
};

/// Consumers of one process.
const CONSUMERS_MAX: usize = 200;
/// Processes that are kept.
const PROCESSES_MAX: usize = 200;
/// Bytes of one text of a report. Names of queues at the broker have up to 255.
const TEXT_MAX_BYTES: usize = 255;
/// A process reports every five seconds; after so long without a report its figures are old.
const LIVE_FOR: Duration = Duration::from_secs(20);
/// A process that does not report any more is shown for so long.
const KEPT_FOR: Duration = Duration::from_mins(10);

/// The last report of each process, by who sent it and the process.
#[derive(Debug, Default)]
pub(in crate::operations) struct Board {
    reports: Mutex<BTreeMap<(Option<String>, Name), Entry>>,
}

#[derive(Debug)]
struct Entry {
    report: ConsumerReport,
    came: Instant,
    at: Timestamp,
}

impl Operations {
    /// Shows the consumers of this process too.
    #[must_use]
    pub fn consumers_here(mut self, source: ConsumerSource) -> Self {
        self.consumers_here = Some(source);
        self
    }

    /// Takes in what a process says of its consumers. `owner` is who sent it: a caller changes only what it
    /// has sent itself.
    pub fn report_consumers(
        &self,
        owner: Option<String>,
        report: ConsumerReport,
    ) -> Result<ConsumersReported> {
        let process = checked(&report)?;
        let (consumers, key) = (report.consumers.len() as u64, (owner, process.clone()));
        let mut reports = self.board.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.retain(|_, entry| entry.came.elapsed() < KEPT_FOR);
        if consumers == 0 {
            reports.remove(&key);
            return Ok(ConsumersReported { process, consumers });
        }
        if reports.len() >= PROCESSES_MAX && !reports.contains_key(&key) {
            let message = format!("{PROCESSES_MAX} processes with consumers report to this server already");
            return Err(ErrorDetail::new(ErrorCode::Unavailable, message)
                .hint("the figures of a process are also in its own /metrics"));
        }
        reports.insert(key, Entry { report, came: Instant::now(), at: now() });
        Ok(ConsumersReported { process, consumers })
    }

    /// Every process with consumers that has reported to this server lately.
    pub fn consumers(&self) -> Consumers {
        let here = self.consumers_here.iter().map(|source| ConsumerProcess {
            process: None,
            host: String::new(),
            pid: std::process::id(),
            version: self.version.to_string(),
            live: true,
            seen_at: now(),
            consumers: source.read().into_iter().map(view).collect(),
        });
        let mut reports = self.board.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.retain(|_, entry| entry.came.elapsed() < KEPT_FOR);
        let there = reports.iter().map(|((_, process), entry)| ConsumerProcess {
            process: Some(process.clone()),
            host: entry.report.host.clone(),
            pid: entry.report.pid,
            version: entry.report.version.clone(),
            live: entry.came.elapsed() < LIVE_FOR,
            seen_at: entry.at,
            consumers: entry.report.consumers.clone(),
        });
        Consumers { processes: here.chain(there).collect() }
    }
}

/// The name of the process of a report that is within the bounds.
fn checked(report: &ConsumerReport) -> Result<Name> {
    let process = Name::new("process", &report.process)?;
    if report.consumers.len() > CONSUMERS_MAX {
        let n = report.consumers.len();
        return Err(ErrorDetail::invalid(format!("consumers has {n} entries; at most {CONSUMERS_MAX}")));
    }
    let of_consumers = report.consumers.iter().flat_map(|one| [&one.queue, &one.event_type]);
    if of_consumers.chain([&report.host, &report.version]).any(|text| text.len() > TEXT_MAX_BYTES) {
        return Err(ErrorDetail::invalid(format!("a text of a report has at most {TEXT_MAX_BYTES} bytes")));
    }
    Ok(process)
}

fn view(reading: ConsumerReading) -> ConsumerView {
    let [acked, rejected, requeued] = reading.answered;
    ConsumerView {
        queue: reading.queue,
        event_type: reading.event_type,
        state: if reading.is_consuming { ConsumerState::Consuming } else { ConsumerState::Reconnecting },
        busy: reading.busy,
        allowed: reading.allowed,
        workers: reading.workers,
        prefetch: reading.prefetch,
        queue_messages: reading.queue_messages,
        deliveries: reading.deliveries,
        redeliveries: reading.redeliveries,
        acked,
        rejected,
        requeued,
        unanswered: reading.unanswered,
        reconnects: reading.channels.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_conformance::MemoryStore;
    use windlass_core::{Rules, time::ManualClock};

    use super::*;

    fn operations() -> Operations {
        let clock = Arc::new(ManualClock::new(Timestamp::from_ms(0)));
        Operations::new(Arc::new(MemoryStore::new(clock, Rules::default())))
    }

    fn report(process: &str, busy: u64) -> ConsumerReport {
        let one = ConsumerView { queue: "orders".into(), busy, ..ConsumerView::default() };
        ConsumerReport { process: process.into(), consumers: vec![one], ..ConsumerReport::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_shown_with_its_last_report_until_it_is_old() {
        let operations = operations();
        for busy in [1, 2] {
            operations.report_consumers(None, report("p", busy)).unwrap();
        }
        let shown = operations.consumers().processes;
        assert_eq!((shown.len(), shown[0].consumers[0].busy, shown[0].live), (1, 2, true));
        tokio::time::advance(LIVE_FOR).await;
        assert!(!operations.consumers().processes[0].live);
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!(operations.consumers(), Consumers::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_stops_is_gone_and_only_its_owner_can_say_so() {
        let operations = operations();
        operations.report_consumers(Some("token a".into()), report("p", 1)).unwrap();
        let stopped = || ConsumerReport { consumers: Vec::new(), ..report("p", 0) };
        operations.report_consumers(Some("token b".into()), stopped()).unwrap();
        assert_eq!(operations.consumers().processes.len(), 1);
        operations.report_consumers(Some("token a".into()), stopped()).unwrap();
        assert_eq!(operations.consumers().processes.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn processes_and_their_consumers_are_bounded() {
        let operations = operations();
        let send = |report| operations.report_consumers(None, report);
        for n in 0..PROCESSES_MAX {
            send(report(&format!("p{n}"), 1)).unwrap();
        }
        assert_eq!(send(report("one more", 1)).unwrap_err().code, ErrorCode::Unavailable);
        send(report("p7", 2)).unwrap();
        let many =
            ConsumerReport { consumers: vec![ConsumerView::default(); CONSUMERS_MAX + 1], ..report("p7", 1) };
        let long = ConsumerReport { host: "x".repeat(TEXT_MAX_BYTES + 1), ..report("p7", 1) };
        for wrong in [many, long, report("", 1)] {
            assert_eq!(send(wrong).unwrap_err().code, ErrorCode::Invalid);
        }
        tokio::time::advance(KEPT_FOR).await;
        send(report("one more", 1)).unwrap();
    }

    #[tokio::test]
    async fn consumers_of_the_servers_own_process_are_shown() {
        let read = || {
            vec![ConsumerReading {
                queue: "q".into(),
                channels: 3,
                is_consuming: true,
                ..ConsumerReading::default()
            }]
        };
        let shown = operations().consumers_here(ConsumerSource::new(read)).consumers().processes.remove(0);
        let one = &shown.consumers[0];
        assert_eq!((shown.process, one.state, one.reconnects), (None, ConsumerState::Consuming, 2));
    }
}
