//! The one table of settings.

pub use super::access::{
    ALLOWED_HOSTS, AUTH, CA, CONNECTIONS_MAX, DASHBOARD, DASHBOARD_LISTEN, PUBLIC_URL, RATE_LIMIT, READ_ONLY,
    TLS_CERT, TLS_CLIENT_CA, TLS_CLIENT_SCOPES, TLS_KEY, TOKEN_FILE,
};
use super::setting::{Kind, Setting};

const HOUR_MS: u64 = 3_600_000;
const GIB: u64 = 1 << 30;

/// Where the tasks are.
pub static STORE: Setting = Setting::new(
    "store",
    Kind::Text,
    "sqlite:windlass.db",
    "Where tasks are kept: `sqlite:FILE` or `postgres://USER@HOST/DATABASE`. Also read from the file that WINDLASS_STORE_FILE names.",
)
.flag("--store");
/// The schema of a PostgreSQL store.
pub static SCHEMA: Setting = Setting::new(
    "schema",
    Kind::Text,
    "windlass",
    "The schema of a PostgreSQL store. Each schema is a store of its own.",
)
.flag("--schema");
/// How workers learn of new tasks.
pub static NOTIFY: Setting = Setting::new(
    "notify",
    Kind::Text,
    "on",
    "How workers on PostgreSQL hear of new tasks: `on` (LISTEN), `off` (polling alone), or a direct postgres:// address if `store` is the address of a pooler.",
);
/// Whether `store` is the address of a pooler.
pub static POOLER: Setting = Setting::new(
    "pooler",
    Kind::Choice(&["none", "transaction"]),
    "none",
    "`transaction` if `store` is the address of PgBouncer, or of a similar pooler, in transaction mode.",
);
/// Connections for everything except claims, settlements and renewals.
pub static STORE_CONNECTIONS: Setting = Setting::new(
    "store_connections",
    Kind::Count { min: 1, max: 100 },
    "3",
    "Connections of this process to PostgreSQL for enqueues, look-ups and commands. Claims, settlements, renewals, duties and notifications each have one more of their own.",
);
/// Whether the leader vacuums.
pub static VACUUM: Setting = Setting::new(
    "vacuum",
    Kind::Choice(&["on", "off"]),
    "on",
    "Whether one worker of a PostgreSQL store vacuums the tables that every task writes to, as soon as they hold enough dead rows. Its user must own the tables. `off` leaves them to autovacuum.",
);
/// The server that commands talk to.
pub static SERVER: Setting = Setting::new(
    "server",
    Kind::Text,
    "",
    "The server that commands talk to. Without it: the store that `store` names or that is in this folder, through the server that runs on it; where there is none, the server at `listen`.",
)
.flag("--server");
/// Where the server listens.
pub static LISTEN: Setting = Setting::new(
    "listen",
    Kind::Address,
    "127.0.0.1:7878",
    "Where `windlass up` listens. Any address but loopback needs TLS and tokens, or --insecure.",
)
.flag("--listen");
/// Where a worker without the API answers a monitor.
pub static METRICS_LISTEN: Setting = Setting::new(
    "metrics_listen",
    Kind::Address,
    "",
    "Where `windlass worker` and `windlass consume` answer /metrics, /healthz and /readyz; without it nowhere. `windlass up` answers them on `listen`. Any address but loopback needs TLS and tokens, or --insecure.",
)
.flag("--metrics-listen");
/// Whether metrics are kept.
pub static METRICS: Setting = Setting::new(
    "metrics",
    Kind::Choice(&["on", "off"]),
    "on",
    "Whether metrics are kept. With `off` there is no /metrics.",
);
/// How often the whole store is audited.
pub static AUDIT_MS: Setting = Setting::new(
    "audit_ms",
    Kind::Millis { min: 0, max: 24 * HOUR_MS },
    "600000",
    "How often the whole store is audited for broken promises. The workers that serve metrics take turns. If an audit takes long, the next one comes later. 0: never.",
);
/// A named size of the process.
pub static ENV: Setting = Setting::new(
    "env",
    Kind::Choice(&["production", "staging", "development"]),
    "",
    "A preset of slots: production 100 × 5, staging 20 × 3, development 5 × 2. `slots` overrides it; the variable MAX_CONCURRENT_TASKS is only an upper bound for it.",
)
.flag("--env");
/// Tasks at once of each worker in a preset.
pub static WORKER_CONCURRENCY: Setting = Setting::new(
    "worker_concurrency",
    Kind::Count { min: 1, max: 1_000 },
    "",
    "Replaces the second factor of the preset that `env` names.",
)
.document("WORKER_CONCURRENCY");
/// How many tasks run at once.
pub static SLOTS: Setting = Setting::new(
    "slots",
    Kind::Count { min: 1, max: 100_000 },
    "1000",
    "How many tasks run at once in this process.",
)
.flag("--slots")
.document("MAX_CONCURRENT_TASKS");
/// Queues that the worker serves.
pub static QUEUES: Setting =
    Setting::new("queues", Kind::Names, "", "Queues that the worker serves; empty means all.")
        .flag("--queues");
/// How many tasks a claim takes.
pub static CLAIM_BATCH_SIZE: Setting = Setting::new(
    "claim_batch_size",
    Kind::Count { min: 1, max: 10_000 },
    "50",
    "How many tasks a claim takes at first; the number grows while tasks are short. A number that you set is also the most.",
)
.document("CLAIM_BATCH_SIZE");
/// How often an idle worker polls.
pub static POLL_INTERVAL_MS: Setting = Setting::new(
    "poll_interval_ms",
    Kind::Millis { min: 10, max: 60_000 },
    "100",
    "How often a worker looks for work when nothing wakes it.",
)
.document("POLL_INTERVAL_MS");
/// The longest pause between two polls of an idle worker.
pub static POLL_INTERVAL_MAX_MS: Setting = Setting::new(
    "poll_interval_max_ms",
    Kind::Millis { min: 10, max: 60_000 },
    "1000",
    "How long an idle worker may wait between two looks; a ready task starts within this even if every wake-up is lost.",
);
/// Buffer of the in-process pool.
pub static POOL_BUFFER_SIZE: Setting = Setting::new(
    "pool.buffer_size",
    Kind::Count { min: 1, max: u64::MAX },
    "100",
    "Buffer of the in-process pool. The durable worker has no buffer and does not read it.",
)
.document("WORKER_BUFFER_SIZE");
/// Size of the in-process pool.
pub static POOL_SIZE: Setting = Setting::new(
    "pool.size",
    Kind::Count { min: 1, max: u64::MAX },
    "",
    "Size of the in-process pool; without it CPUs × 4. The durable worker uses `slots` instead.",
)
.document("WORKER_POOL_SIZE");
/// How long a worker counts as alive.
pub static LEASE_TTL_MS: Setting = Setting::new(
    "lease_ttl_ms",
    Kind::Millis { min: 1_000, max: HOUR_MS },
    "10000",
    "How long a worker counts as alive after its last heartbeat.",
);
/// How often a worker renews its lease.
pub static HEARTBEAT_MS: Setting = Setting::new(
    "heartbeat_ms",
    Kind::Millis { min: 100, max: HOUR_MS },
    "2000",
    "How often a worker renews its lease; at most a third of `lease_ttl_ms`.",
);
/// How often workers look for dead workers.
pub static SWEEP_MS: Setting = Setting::new(
    "sweep_ms",
    Kind::Millis { min: 100, max: HOUR_MS },
    "2000",
    "How often workers look for tasks of dead workers.",
);
/// How long a stop may take.
pub static DRAIN_TIMEOUT_MS: Setting = Setting::new(
    "drain_timeout_ms",
    Kind::Millis { min: 0, max: 24 * HOUR_MS },
    "30000",
    "How long running tasks may finish after Ctrl-C or SIGTERM before they are handed back.",
)
.flag("--drain-timeout");
/// Whether admission control acts.
pub static ADMISSION: Setting = Setting::new(
    "admission",
    Kind::Choice(&["on", "off"]),
    "on",
    "Whether fewer tasks than `slots` may run while memory is short, tasks are slow or the worker has just started. `off`: memory use is only shown.",
);
/// The share of memory above which less may run.
pub static MEMORY_HIGH: Setting = Setting::new(
    "memory_high",
    Kind::Share { min: 100, max: 950 },
    "0.8",
    "While memory use is above this share of the memory limit that applies, fewer tasks may run.",
);
/// A limit on the memory of this process.
pub static MEMORY_LIMIT: Setting = Setting::new(
    "memory_limit",
    Kind::Bytes { min: 1 << 20, max: u64::MAX },
    "",
    "A limit on the memory of this process, in addition to the one that it finds: that of its control group, else that of the host.",
);
/// The task time above which fewer tasks may run.
pub static LATENCY_THRESHOLD_MS: Setting = Setting::new(
    "latency_threshold_ms",
    Kind::Millis { min: 1, max: 24 * HOUR_MS },
    "",
    "While the p99 of task times is above this, fewer tasks may run; without it task times have no effect.",
);
/// The same for single kinds.
pub static KIND_LATENCY_THRESHOLDS: Setting = Setting::new(
    "kind_latency_thresholds",
    Kind::Thresholds,
    "",
    "The same for single kinds, in place of `latency_threshold_ms`: `[\"http=5s\", \"mail=250ms\"]`.",
);
/// Whether a power cut can lose an acknowledged write.
pub static DURABILITY: Setting = Setting::new(
    "durability",
    Kind::Choice(&["full", "normal"]),
    "full",
    "`full`: every acknowledged write survives a power cut. `normal`: it survives a crash of the process only.",
)
.flag("--durability");
/// Whether a crash of the database can take back a claim.
pub static CLAIMS: Setting = Setting::new(
    "claims",
    Kind::Choice(&["soon", "durable"]),
    "soon",
    "`soon`: a task starts before its claim is safe on disk; after a crash of PostgreSQL, or a power cut beside a remote worker, it may run on two workers for a moment (docs/guarantees.md, ONE-LEASE). `durable`: it starts after that.",
);
/// Whether ended tasks are kept.
pub static HISTORY: Setting = Setting::new(
    "history",
    Kind::Choice(&["kept", "off"]),
    "kept",
    "`kept`: done and cancelled tasks are kept as the next two settings say. `off`: they are removed at once.",
)
.flag("--history");
/// How long ended tasks are kept.
pub static HISTORY_DAYS: Setting =
    Setting::new("history_days", Kind::Days, "7", "How long done and cancelled tasks are kept.");
/// How many bytes of them are kept.
pub static HISTORY_MAX_BYTES: Setting = Setting::new(
    "history_max_bytes",
    Kind::Bytes { min: 1 << 20, max: u64::MAX },
    "1GiB",
    "How many bytes done and cancelled tasks may take; the oldest are removed first.",
);
/// How long dead tasks are kept.
pub static DEAD_DAYS: Setting = Setting::new("dead_days", Kind::Days, "30", "How long dead tasks are kept.");
/// Largest payload.
pub static PAYLOAD_MAX_BYTES: Setting = Setting::new(
    "payload_max_bytes",
    Kind::Bytes { min: 1_024, max: GIB },
    "1MiB",
    "Largest payload; a larger one is refused.",
);
/// Largest output.
pub static OUTPUT_MAX_BYTES: Setting = Setting::new(
    "output_max_bytes",
    Kind::Bytes { min: 0, max: GIB },
    "64KiB",
    "Largest output that is kept with a task.",
);
/// Longest error.
pub static ERROR_MAX_BYTES: Setting = Setting::new(
    "error_max_bytes",
    Kind::Bytes { min: 64, max: 1 << 20 },
    "4KiB",
    "Longest error text that is kept; the rest is cut.",
);
/// Attempts of a task.
pub static MAX_ATTEMPTS: Setting = Setting::new(
    "max_attempts",
    Kind::Count { min: 1, max: windlass_core::task::MAX_ATTEMPTS_LIMIT as u64 },
    "10",
    "Attempts of a task that names no number of its own.",
);
/// Crashes of a task.
pub static MAX_CRASHES: Setting = Setting::new(
    "max_crashes",
    // With 1, a task that kills the process would also kill every task that runs beside it.
    Kind::Count { min: 2, max: 1_000 },
    "3",
    "A task becomes dead after its process has died this many times, if no other task ran in the process at the last death.",
);
/// First retry delay.
pub static RETRY_BASE_MS: Setting = Setting::new(
    "retry_base_ms",
    Kind::Millis { min: 1, max: 24 * HOUR_MS },
    "1000",
    "Delay after the first failed attempt; each further failure doubles it, ± 20 %.",
);
/// Longest retry delay.
pub static RETRY_MAX_MS: Setting = Setting::new(
    "retry_max_ms",
    Kind::Millis { min: 1, max: 24 * HOUR_MS },
    "600000",
    "Longest delay between two attempts.",
);
/// The limit of new jobs.
pub static JOB_DEFAULT_CONCURRENCY: Setting = Setting::new(
    "job_default_concurrency",
    Kind::Count { min: 1, max: 1_000_000 },
    "",
    "The limit that a job gets when it is first used; without it a job has none.",
);
/// How long keys are remembered.
pub static IDEMPOTENCY_TTL_DAYS: Setting = Setting::new(
    "idempotency_ttl_days",
    Kind::Days,
    "7",
    "How long an idempotency key is remembered after its task ended.",
);
/// Room that must stay free on the disk.
pub static MIN_FREE_DISK_BYTES: Setting = Setting::new(
    "min_free_disk_bytes",
    Kind::Bytes { min: 0, max: u64::MAX },
    "1GiB",
    "While less disk than this is free, new tasks are refused with `store_full`; running ones go on.",
);
/// Share that must stay free on the disk.
pub static MIN_FREE_DISK_PERCENT: Setting = Setting::new(
    "min_free_disk_percent",
    Kind::Count { min: 0, max: 90 },
    "5",
    "The same as a share of the disk; the larger of the two counts.",
);
/// Addresses that http tasks may reach besides public ones.
pub static ALLOW_TARGET: Setting = Setting::new(
    "allow_target",
    Kind::Networks,
    "",
    "Networks that `http` tasks may reach although they are loopback, private or link-local.",
)
.flag("--allow-target");
/// Variables that http headers may name.
pub static HTTP_HEADER_ENV: Setting = Setting::new(
    "http_header_env",
    Kind::Variables,
    "",
    "Environment variables whose value a header of an `http` task may take with {\"env\": \"NAME\"}.",
);
/// Whether http tasks go through the environment's proxy.
pub static HTTP_PROXY: Setting = Setting::new(
    "http_proxy",
    Kind::Choice(&["ignored", "environment"]),
    "ignored",
    "Whether `http` tasks use the proxy that http_proxy, https_proxy, all_proxy and no_proxy name.",
);
/// Form of the log.
pub static LOG_FORMAT: Setting =
    Setting::new("log_format", Kind::Choice(&["text", "json"]), "text", "Form of log lines on stderr.")
        .flag("--log-format");
/// How much is logged.
pub static LOG_LEVEL: Setting = Setting::new(
    "log_level",
    Kind::Choice(&["off", "error", "warn", "info", "debug", "trace"]),
    "warn",
    "How much is logged. Payloads never are.",
)
.flag("--log-level");

/// Where spans go.
pub static OTLP_ENDPOINT: Setting = Setting::new(
    "otlp_endpoint",
    Kind::Text,
    "",
    "The OpenTelemetry collector that spans of tasks go to, such as http://127.0.0.1:4318 (OTLP over HTTP); without it no span is sent.",
)
.flag("--otlp")
.document("OTEL_EXPORTER_OTLP_ENDPOINT");

/// The broker.
pub static AMQP_URL: Setting = Setting::new(
    "amqp.url",
    Kind::Text,
    "",
    "The RabbitMQ that `windlass consume` consumes from: `amqp://USER:PASSWORD@HOST:PORT/VHOST`. The lists `[[amqp.exchange]]`, `[[amqp.queue]]`, `[[amqp.binding]]` and `[[amqp.consumer]]` say what; docs/guides/consume.toml is an example.",
)
.flag("--amqp");
/// Every setting, in the order of the documentation.
pub static ALL: &[&Setting] = &[
    &STORE,
    &SCHEMA,
    &NOTIFY,
    &POOLER,
    &STORE_CONNECTIONS,
    &VACUUM,
    &SERVER,
    &TOKEN_FILE,
    &CA,
    &LISTEN,
    &DASHBOARD,
    &DASHBOARD_LISTEN,
    &AUTH,
    &READ_ONLY,
    &RATE_LIMIT,
    &CONNECTIONS_MAX,
    &ALLOWED_HOSTS,
    &PUBLIC_URL,
    &TLS_CERT,
    &TLS_KEY,
    &TLS_CLIENT_CA,
    &TLS_CLIENT_SCOPES,
    &METRICS_LISTEN,
    &METRICS,
    &AUDIT_MS,
    &ENV,
    &SLOTS,
    &WORKER_CONCURRENCY,
    &QUEUES,
    &CLAIM_BATCH_SIZE,
    &POLL_INTERVAL_MS,
    &POLL_INTERVAL_MAX_MS,
    &LEASE_TTL_MS,
    &HEARTBEAT_MS,
    &SWEEP_MS,
    &DRAIN_TIMEOUT_MS,
    &ADMISSION,
    &MEMORY_HIGH,
    &MEMORY_LIMIT,
    &LATENCY_THRESHOLD_MS,
    &KIND_LATENCY_THRESHOLDS,
    &DURABILITY,
    &CLAIMS,
    &HISTORY,
    &HISTORY_DAYS,
    &HISTORY_MAX_BYTES,
    &DEAD_DAYS,
    &PAYLOAD_MAX_BYTES,
    &OUTPUT_MAX_BYTES,
    &ERROR_MAX_BYTES,
    &MAX_ATTEMPTS,
    &MAX_CRASHES,
    &RETRY_BASE_MS,
    &RETRY_MAX_MS,
    &JOB_DEFAULT_CONCURRENCY,
    &IDEMPOTENCY_TTL_DAYS,
    &MIN_FREE_DISK_BYTES,
    &MIN_FREE_DISK_PERCENT,
    &ALLOW_TARGET,
    &HTTP_HEADER_ENV,
    &HTTP_PROXY,
    &LOG_FORMAT,
    &LOG_LEVEL,
    &OTLP_ENDPOINT,
    // Tables come last: TOML assigns every plain key after a table to that table.
    &AMQP_URL,
    &POOL_BUFFER_SIZE,
    &POOL_SIZE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::setting::{Raw, Value};

    #[test]
    fn every_default_is_valid_and_inside_its_bounds() {
        for setting in ALL.iter().filter(|setting| !setting.default.is_empty()) {
            let read = setting.read(&Raw::Text(setting.default.to_owned())).unwrap();
            assert_eq!(read.clamped, None, "{}", setting.key);
            assert_ne!(setting.default_value(), Value::None, "{}", setting.key);
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<String> = ALL
            .iter()
            .flat_map(|setting| [Some(setting.variable()), setting.flag.map(str::to_owned)])
            .flatten()
            .collect();
        let total = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), total);
    }
}
