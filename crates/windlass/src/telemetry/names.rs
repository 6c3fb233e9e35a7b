//! Every metric: its name, its type, its labels and its meaning. A test compares docs/metrics.md with this
//! table.
//!
//! The label of a job is `job_name`: Prometheus adds `job` and `instance` to everything that it scrapes, and
//! would rename ours.

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only rises, until the process ends.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size; with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Its name in the text format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One row of the table.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, in one line.
    pub help: &'static str,
}

impl Metric {
    /// Whether only a process with consumers of a broker exports it.
    pub fn is_of_consumers(&self) -> bool {
        self.name.starts_with("windlass_amqp_")
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    buckets: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(buckets), labels, help }
}

/// 1 ms to 600 s, for what handlers do.
const TASK_SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0,
    300.0, 600.0,
];
/// 100 µs to 10 s, for what a store does.
const STORE_SECONDS: &[f64] =
    &[0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// The labels that identify consumers.
const CONSUMER: &[&str] = &["queue", "event_type"];
/// Numbers of tasks in one call.
const TASKS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

macro_rules! table {
    ($($(#[$doc:meta])* $constant:ident = $metric:expr;)*) => {
        $($(#[$doc])* pub static $constant: Metric = $metric;)*

        /// Every metric, in the order of the documentation.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

table! {
    /// Handlers that run.
    IN_FLIGHT = gauge("worker_in_flight_tasks", &[], "Tasks whose handlers run in this process.");
    /// Successes.
    COMPLETED = counter("worker_tasks_completed_total", &[], "Attempts that ended in success.");
    /// Handler time.
    TASK_DURATION = histogram("worker_task_duration_seconds", TASK_SECONDS, &[], "How long handlers ran, with any outcome.");
    /// Claims.
    CLAIMS = counter("worker_claims_total", &["result"], "Claim attempts by result: `tasks` returned some, `empty` none, `failed` ended in an error.");
    /// Tasks of a claim.
    CLAIM_SIZE = histogram("worker_claim_size", TASKS, &[], "Tasks that one answered claim brought.");

    /// Version.
    BUILD_INFO = gauge("windlass_build_info", &["version"], "Always 1; the label says which version runs.");
    /// Enqueued.
    ENQUEUED = counter("windlass_tasks_enqueued_total", &["result"], "Tasks enqueued through this process: `new`, or `existing` if their key was known. Tasks that an application enqueues inside its own transactions are not counted.");
    /// Claimed.
    CLAIMED = counter("windlass_tasks_claimed_total", &["kind"], "Tasks claimed by this worker.");
    /// Settled.
    SETTLED = counter("windlass_tasks_settled_total", &["kind", "outcome"], "Ends of attempts that the store acknowledged: `done`, `retry`, `snooze`, `release`, `dead`, `cancelled`.");
    /// Retries.
    RETRIES = counter("windlass_task_retries_total", &[], "Failed attempts that are tried again.");
    /// Panics.
    PANICS = counter("windlass_task_panics_total", &[], "Handlers that panicked.");
    /// Deadlines.
    TIMEOUTS = counter("windlass_task_timeouts_total", &[], "Handlers that reached their deadline.");
    /// Leases lost.
    LEASE_LOSSES = counter("windlass_lease_losses_total", &[], "Ends of attempts that the store refused because the lease was lost.");
    /// Self-fences.
    SELF_FENCES = counter("windlass_self_fences_total", &[], "Times that this worker gave up its leases because it could not renew them.");
    /// Renewals.
    RENEWALS = counter("windlass_lease_renewals_total", &["result"], "Renewals of this worker's lease: `ok` or `failed`.");
    /// Reconciled.
    RECONCILED = counter("windlass_tasks_reconciled_total", &[], "Tasks that the store had recorded for this worker but that the worker did not hold; they were handed back.");
    /// Rejected dispatches.
    REJECTED = counter("windlass_dispatches_rejected_total", &[], "Tasks that the pool gave back because its buffer was full.");
    /// Claim time.
    CLAIM_DURATION = histogram("windlass_claim_duration_seconds", STORE_SECONDS, &[], "How long the store took to answer a claim, empty and failed ones included.");
    /// Pickup.
    PICKUP = histogram("windlass_pickup_latency_seconds", TASK_SECONDS, &[], "Time from enqueue to claim, for first attempts of tasks without a job and a workflow. If a task has a start time, the time until then counts too.");
    /// Batches of settlements.
    SETTLE_BATCH = histogram("windlass_settle_batch_size", TASKS, &[], "Ends of attempts in one acknowledged batch.");
    /// Failed settlements.
    SETTLE_FAILURES = counter("windlass_settle_failures_total", &[], "Batches of settlements that failed and were sent again.");
    /// Unsettled.
    UNSETTLED = gauge("windlass_unsettled_tasks", &[], "Attempts that have ended and whose end is not yet written.");
    /// Slots.
    SLOTS = gauge("windlass_slots", &[], "Slots of this worker: how many tasks may run at once.");
    /// Slots that may be used.
    SLOTS_ALLOWED = gauge("windlass_slots_allowed", &[], "Slots that admission control allows now.");
    /// Memory of the limit that applies.
    MEMORY_USAGE = gauge("windlass_memory_usage_ratio", &[], "Memory in use as a share of the limit that applies, control group before host; left out where it cannot be read.");
    /// Slots in use.
    SLOTS_USED = gauge("windlass_slots_used", &[], "Slots that a running task holds.");
    /// Backpressure.
    BACKPRESSURE = gauge("windlass_backpressure_factor", &["reason"], "Share of the slots that may be used at present because of `start`, `memory` or `latency`; 1 for a reason that does not apply.");
    /// Renewal age.
    RENEWAL_AGE = gauge("windlass_worker_renewal_age_seconds", &[], "How long ago the store last answered a renewal of this worker's lease.");
    /// Tick age.
    TICK_AGE = gauge("windlass_coordinator_tick_age_seconds", &[], "How long ago the coordinator last completed a round. While every slot is taken it waits, so the age grows.");
    /// Coordinator deaths.
    COORDINATOR_DEATHS = counter("windlass_coordinator_deaths_total", &[], "Times that the coordinator died and was restarted.");
    /// Draining.
    DRAINING = gauge("windlass_worker_draining", &[], "1 while the worker finishes its tasks and takes no new ones.");

    /// Depth.
    QUEUE_TASKS = gauge("windlass_queue_tasks", &["queue", "state"], "Tasks of a queue by state, for the whole store: `scheduled`, `waiting`, `held`, `ready`, `running`, `dead`. On PostgreSQL exact up to 10000 a state, else the leader's last count.");
    /// Paused.
    QUEUE_PAUSED = gauge("windlass_queue_paused", &["queue"], "1 while the queue is paused, so that no worker claims from it.");
    /// Oldest ready.
    OLDEST_READY = gauge("windlass_oldest_ready_age_seconds", &["queue"], "At least how long the next task of the queue has been ready: time before this process began to watch is not counted. 0 if no task is ready.");
    /// Workers.
    WORKERS = gauge("windlass_workers", &["state"], "Workers of the whole store whose leases are in force: `live`, or `draining` if they take nothing new.");
    /// Settled by job.
    JOB_SETTLED = counter("windlass_job_tasks_settled_total", &["job_name"], "Ends of attempts of a job's tasks on this worker.");
    /// Running by job.
    JOB_RUNNING = gauge("windlass_job_running_tasks", &["job_name"], "Tasks of a job that this worker holds.");
    /// Limit of a job.
    JOB_CONCURRENCY = gauge("windlass_job_concurrency", &["job_name"], "The limit of a job; shown for the busiest jobs of this worker that have one.");
    /// Use of the limit.
    JOB_UTILISATION = gauge("windlass_job_utilisation_ratio", &["job_name"], "Running tasks of a job on all workers, divided by its limit; shown for the busiest jobs of this worker that have one.");

    /// HTTP latency.
    HTTP_DURATION = histogram("windlass_http_request_duration_seconds", TASK_SECONDS, &["outcome"], "How long `http` tasks took, redirects included, by outcome: `done`, `retry`, `dead`, `cancelled`.");

    /// Deliveries.
    AMQP_DELIVERIES = counter("windlass_amqp_deliveries_total", CONSUMER, "Deliveries taken from a queue of RabbitMQ.");
    /// Redeliveries.
    AMQP_REDELIVERIES = counter("windlass_amqp_redeliveries_total", CONSUMER, "Deliveries that had been delivered before, to any consumer.");
    /// Answers.
    AMQP_ACKS = counter("windlass_amqp_acks_total", &["queue", "event_type", "result"], "Deliveries answered: `ack` is done, `reject` failed for good, `requeue` went back into the queue.");
    /// Lost answers.
    AMQP_UNANSWERED = counter("windlass_amqp_unanswered_total", CONSUMER, "Results that came after their channel had gone; the broker delivers those messages again.");
    /// Channels.
    AMQP_CHANNELS = counter("windlass_amqp_channels_total", CONSUMER, "Channels that a consumer has opened, the first included: more than one means that it was disconnected.");
    /// Subscribed.
    AMQP_CONSUMING = gauge("windlass_amqp_consuming", CONSUMER, "1 while the consumer has a channel and takes deliveries, 0 while it tries to get one or stops.");
    /// Prefetch.
    AMQP_PREFETCH = gauge("windlass_amqp_prefetch", CONSUMER, "Deliveries that the broker may send ahead at present; less than configured if they would take more than a tenth of the memory.");
    /// Depth at the broker.
    AMQP_QUEUE_MESSAGES = gauge("windlass_amqp_queue_messages", CONSUMER, "Messages that wait in the broker's queue, as the broker last reported; left out while the broker cannot be reached.");
    /// Workers.
    AMQP_WORKERS = gauge("windlass_amqp_workers", CONSUMER, "Handlers that may run at once, as configured.");
    /// Workers that may be used.
    AMQP_WORKERS_ALLOWED = gauge("windlass_amqp_workers_allowed", CONSUMER, "Handlers that may run at once now, after admission control and the consumer's own adaptation.");
    /// Busy workers.
    AMQP_WORKERS_BUSY = gauge("windlass_amqp_workers_busy", CONSUMER, "Handlers that run.");
    /// Wait in the buffer.
    AMQP_BUFFER_WAIT = histogram("windlass_amqp_buffer_wait_seconds", TASK_SECONDS, CONSUMER, "How long a delivery waited here for a worker.");
    /// Handler time.
    AMQP_HANDLER_DURATION = histogram("windlass_amqp_handler_duration_seconds", TASK_SECONDS, CONSUMER, "How long handlers of deliveries ran, with any outcome.");

    /// Store reachable.
    STORE_REACHABLE = gauge("windlass_store_reachable", &[], "1 if the store answered the last query, else 0.");
    /// Store bytes.
    STORE_BYTES = gauge("windlass_store_bytes", &[], "Bytes of the store on disk, write-ahead log included where it is the store's own.");
    /// Log bytes.
    STORE_WAL_BYTES = gauge("windlass_store_wal_bytes", &[], "Bytes of the embedded store's write-ahead log.");
    /// Disk free.
    STORE_DISK_FREE = gauge("windlass_store_disk_free_bytes", &[], "Free bytes on the disk of an embedded store. Left out for PostgreSQL, whose disk only the server sees.");
    /// History rows.
    STORE_HISTORY = gauge("windlass_store_history_tasks", &[], "Finished tasks in the history.");
    /// Pool size.
    POOL_SIZE = gauge("windlass_store_connections", &["pool"], "Most connections to the store, by purpose; for the embedded store its writer and its readers.");
    /// Pool use.
    POOL_BUSY = gauge("windlass_store_connections_busy", &["pool"], "Connections that are in use.");
    /// Pool uses.
    POOL_USES = counter("windlass_store_connection_uses_total", &["pool"], "How often a connection was used.");
    /// Pool waits.
    POOL_WAIT = counter("windlass_store_connection_wait_seconds_total", &["pool"], "Time that callers waited for a connection.");
    /// Maintenance.
    MAINTENANCE = counter("windlass_maintenance_runs_total", &["duty", "result"], "Runs of a duty (`sweep`, `retention`, `schedules`, `audit`) by result: `ok` or `failed`.");
    /// Ticks of schedules.
    SCHEDULE_TICKS = counter("windlass_schedule_ticks_total", &["result"], "Ticks of schedules that came due here: `fired` enqueued a task, `left_out` did not.");
    /// Audit findings.
    AUDIT_FINDINGS = gauge("windlass_audit_findings", &[], "Tasks that broke a promise at the last audit; `windlass doctor --audit` names them. 0 is the normal value.");
    /// Audit time.
    AUDIT_TIME = gauge("windlass_audit_timestamp_seconds", &[], "When the last audit ran, in seconds since 1970; 0 before the first.");

    /// Spans sent.
    SPANS_EXPORTED = counter("windlass_spans_exported_total", &[], "Spans that the OpenTelemetry collector took; 0 if there is none.");
    /// Spans lost.
    SPANS_DROPPED = counter("windlass_spans_dropped_total", &[], "Spans that were lost: the queue was full, or the collector did not take them. Tasks are not affected.");

    /// Async tasks.
    ASYNC_TASKS = gauge("windlass_process_async_tasks", &[], "Live tasks of the async runtime.");
    /// Open files.
    OPEN_FILES = gauge("windlass_process_open_files", &[], "Open file descriptors.");
    /// Threads.
    THREADS = gauge("windlass_process_threads", &[], "Threads.");
    /// Memory.
    MEMORY = gauge("windlass_process_resident_memory_bytes", &[], "Memory of the process in RAM.");
}

/// The table for docs/metrics.md.
pub fn document() -> String {
    let row = |metric: &&Metric| {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "—".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |\n", metric.name, metric.kind.as_str(), metric.help)
    };
    let head = "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n";
    ALL.iter().map(row).fold(head.to_owned(), |text, row| text + &row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are older than the prefix.
    const FIRST_FIVE: [&str; 5] = [
        "worker_in_flight_tasks",
        "worker_tasks_completed_total",
        "worker_task_duration_seconds",
        "worker_claims_total",
        "worker_claim_size",
    ];

    #[test]
    fn metric_names_are_unique_and_have_the_prefix() {
        let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        for name in names.iter().filter(|name| !name.starts_with("windlass_")) {
            assert!(FIRST_FIVE.contains(name), "{name}");
        }
        for name in FIRST_FIVE {
            assert!(names.contains(&name), "{name}");
        }
        let total = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), total);
    }

    #[test]
    fn counters_and_only_they_end_in_total_and_buckets_rise() {
        for metric in ALL {
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{}", metric.name);
            }
            assert!(!metric.help.contains(['\n', '|']), "{}", metric.name);
            assert!(
                !metric.labels.iter().any(|label| ["job", "instance", "le"].contains(label)),
                "{}",
                metric.name
            );
        }
        assert_eq!(TASK_SECONDS.first().zip(TASK_SECONDS.last()), Some((&0.001, &600.0)));
        assert_eq!(TASKS.first().zip(TASKS.last()), Some((&0.0, &1000.0)));
    }

    #[test]
    fn the_document_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once("<!-- table -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end of table -->\n").unwrap();
        let wanted = format!("{before}<!-- table -->\n{}<!-- end of table -->\n{after}", document());
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            std::fs::write(path, &wanted).unwrap();
        } else {
            assert!(text == wanted, "docs/metrics.md is not in step; run this test with WINDLASS_BLESS=1");
        }
    }
}
