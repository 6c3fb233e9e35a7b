//! The bars: which figure of which bench must reach which value.

use serde_json::Value;

/// A bench with the arguments of a full and of a quick run, and its figures.
pub(super) struct Bench {
    pub(super) name: &'static str,
    pub(super) full: &'static [&'static str],
    pub(super) quick: &'static [&'static str],
    pub(super) figures: fn(&Value) -> Option<Vec<Figure>>,
}

/// A figure beside its bar.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) bar: String,
    pub(super) ok: bool,
}

pub(super) fn at_least(name: &'static str, value: f64, bar: f64) -> Figure {
    Figure { name, value, bar: format!(">= {bar}"), ok: value >= bar }
}

pub(super) fn at_most(name: &'static str, value: f64, bar: f64) -> Figure {
    Figure { name, value, bar: format!("<= {bar}"), ok: value <= bar }
}

/// A figure without a bar, printed for comparison.
pub(super) fn printed(name: &'static str, value: f64) -> Figure {
    Figure { name, value, bar: "printed".into(), ok: value.is_finite() }
}

/// Pickup over gRPC: the time limit, and at most two durable commits.
fn remote_latency(v: &Value) -> Option<Vec<Figure>> {
    Some(vec![
        at_most("p99_ms", number(v, "p99_ms")?, 10.0),
        at_most("p50 / commit", number(v, "p50_in_commits")?, 2.0),
    ])
}

/// The share of steps that run on the worker of the step before, and pickup compared with the same run
/// without that preference. The second figure varies by a tenth from run to run.
fn affinity(v: &Value) -> Option<Vec<Figure>> {
    Some(vec![
        at_least("steps that stayed", number(v, "stayed")?, 0.9),
        at_most("p99 / without, one full", number(v.get("one_full")?, "ratio")?, 1.1),
    ])
}

/// The benches on the embedded store.
pub(super) const EMBEDDED: &[Bench] = &[
    Bench {
        name: "pool",
        full: &["pool"],
        quick: &["pool", "--tasks", "50000"],
        figures: |v| Some(vec![at_least("ratio", number(v, "ratio")?, 0.9)]),
    },
    Bench {
        name: "hol",
        full: &["hol", "--scale", "1", "--rounds", "1"],
        quick: &["hol", "--scale", "0.1", "--rounds", "1"],
        figures: |v| {
            Some(vec![at_most("makespan / ideal", number(v, "makespan_s")? / number(v, "ideal_s")?, 1.05)])
        },
    },
    Bench {
        name: "sleep",
        full: &["sleep", "--tasks", "5000", "--slots", "500"],
        quick: &["sleep", "--tasks", "5000", "--slots", "500", "--rounds", "1"],
        figures: |v| Some(vec![at_least("efficiency", number(v, "efficiency")?, 0.95)]),
    },
    Bench {
        name: "drain",
        full: &["drain", "--tasks", "100000"],
        quick: &["drain", "--tasks", "50000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("ratio", number(v, "ratio")?, 0.6)]),
    },
    Bench {
        name: "drain_off",
        full: &["drain", "--tasks", "100000", "--history", "off"],
        quick: &["drain", "--tasks", "50000", "--history", "off", "--rounds", "1"],
        figures: |v| Some(vec![printed("ratio", number(v, "ratio")?)]),
    },
    Bench {
        name: "metrics_cost",
        full: &["metrics"],
        quick: &["metrics", "--tasks", "50000"],
        figures: |v| Some(vec![at_least("with metrics / without", number(v, "ratio")?, 0.95)]),
    },
    Bench {
        name: "pressure",
        full: &["pressure"],
        quick: &["pressure"],
        figures: |v| {
            let (before, least) = (number(v, "allowed_before")?, number(v, "allowed_least")?);
            let (size, slow) = (number(v, "claim_size_before")?, number(v, "claim_size_slow")?);
            Some(vec![
                at_most("allowed, slow / before", least / before, 0.7),
                at_least("allowed, after / before", number(v, "allowed_after")? / before, 1.0),
                at_most("claim size, slow / before", slow / size, 0.95),
            ])
        },
    },
    Bench {
        name: "pressure_memory",
        full: &["pressure", "--memory"],
        quick: &["pressure", "--memory", "--tasks", "2000"],
        figures: |v| {
            let is = |part: &str, what: &str| Some(f64::from(u8::from(v.get(part)?.get(what)?.as_bool()?)));
            Some(vec![
                at_least("finished with 256 MB", is("on", "finished")?, 1.0),
                at_most("killed", is("on", "killed")?, 0.0),
                printed("peak MB", number(v.get("on")?, "group_peak_mb")?),
                printed("killed without control", is("off", "killed")?),
            ])
        },
    },
    Bench {
        name: "failures",
        full: &["failures"],
        quick: &["failures", "--tasks", "20000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("failing / succeeding", number(v, "ratio")?, 0.8)]),
    },
    Bench {
        name: "demo",
        full: &["demo", "--seconds", "60"],
        quick: &["demo", "--seconds", "30"],
        figures: |v| {
            Some(vec![
                at_least("efficiency", number(v, "efficiency")?, 0.97),
                at_most("max_concurrency_seen", number(v, "max_concurrency_seen")?, 3.0),
                at_least("min_peak", number(v, "min_peak")?, 3.0),
                at_least("job_min_ratio", number(v, "job_min_ratio")?, 0.9),
                at_most("job_max_ratio", number(v, "job_max_ratio")?, 1.1),
                at_most("claim_p99_ms", number(v, "claim_p99_ms")?, 50.0),
                at_most("slots_peak", number(v, "slots_peak")?, 186.0),
            ])
        },
    },
    Bench {
        name: "demo_staging",
        full: &["demo", "--env", "staging", "--seconds", "60"],
        quick: &["demo", "--env", "staging", "--seconds", "30"],
        figures: |v| {
            let idle = number(v, "longest_idle_ms")? / number(v, "mean_delay_ms")?;
            Some(vec![
                printed("efficiency", number(v, "efficiency")?),
                at_least("job_min_ratio", number(v, "job_min_ratio")?, 0.75),
                at_most("job_max_ratio", number(v, "job_max_ratio")?, 1.25),
                at_most("longest idle / task", idle, 3.0),
                at_most("slots_peak", number(v, "slots_peak")?, 60.0),
            ])
        },
    },
    Bench {
        name: "jobs",
        full: &["jobs"],
        quick: &["jobs", "--jobs", "300", "--rounds", "1"],
        figures: |v| jobs(v, 0.5),
    },
    Bench {
        name: "enqueue",
        full: &["enqueue"],
        quick: &["enqueue", "--rounds", "1"],
        figures: |v| {
            let ratio = number(v, "single_per_second")? / number(v, "ceiling_per_second")?;
            Some(vec![at_least("64 callers / bare", ratio, 20.0)])
        },
    },
    Bench {
        name: "latency",
        full: &["latency", "--tasks", "1000"],
        quick: &["latency", "--tasks", "300"],
        figures: |v| {
            let (p50, commit) = (number(v, "p50_ms")?, number(v, "commit_ms")?);
            let back_to_back = number(v, "commit_back_to_back_ms")?;
            Some(vec![
                at_most("p50 / commit", p50 / commit, 2.5),
                at_most("p50 / commit back to back", p50 / back_to_back, 2.5),
            ])
        },
    },
    Bench {
        name: "remote_latency",
        full: &["latency", "--remote", "--tasks", "1000"],
        quick: &["latency", "--remote", "--tasks", "300"],
        figures: remote_latency,
    },
    Bench {
        name: "affinity",
        full: &["affinity", "--rounds", "9"],
        quick: &["affinity", "--rounds", "1"],
        figures: affinity,
    },
    Bench {
        name: "remote_drain",
        full: &["drain", "--remote", "--tasks", "100000"],
        quick: &["drain", "--remote", "--tasks", "50000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("over gRPC / direct", number(v, "ratio")?, 0.7)]),
    },
    Bench {
        name: "backlog",
        full: &["backlog"],
        quick: &["backlog", "--waiting", "100000", "--claims", "300"],
        figures: |v| {
            let p99: Option<Vec<f64>> = v.as_array()?.iter().map(|case| number(case, "p99_ms")).collect();
            let p99 = p99?;
            let worst = p99.iter().copied().fold(0.0, f64::max);
            Some(vec![at_most("worst p99 / smallest", worst / p99.first()?, 2.0)])
        },
    },
    Bench {
        name: "memory",
        full: &["memory"],
        quick: &["memory", "--waiting", "200000"],
        figures: |v| {
            Some(vec![
                at_most("rss_mb, 10k in flight", number(v, "rss_mb")?, 150.0),
                at_most("1M waiting / 10k", number(v, "waiting_ratio")?, 1.2),
            ])
        },
    },
    Bench {
        name: "soak",
        full: &["soak"],
        quick: &["soak", "--tasks", "60000", "--seconds", "30", "--history-seconds", "6"],
        figures: |v| Some(vec![at_most("file 5th / 2nd minute", number(v, "growth")?, 1.0)]),
    },
    Bench {
        name: "soak_mixed",
        full: &["soak", "--minutes", "10"],
        quick: &["soak", "--minutes", "2"],
        figures: soak,
    },
];

/// The benches on a private PostgreSQL.
pub(super) const POSTGRES: &[Bench] = &[
    Bench {
        name: "pg_drain",
        full: &["drain", "--store", "postgres", "--tasks", "200000", "--rounds", "7"],
        quick: &["drain", "--store", "postgres", "--tasks", "50000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("ratio", number(v, "ratio")?, 0.8)]),
    },
    Bench {
        name: "pg_drain_off",
        full: &["drain", "--store", "postgres", "--tasks", "200000", "--history", "off"],
        quick: &["drain", "--store", "postgres", "--tasks", "50000", "--history", "off", "--rounds", "1"],
        figures: |v| Some(vec![printed("ratio", number(v, "ratio")?)]),
    },
    Bench {
        name: "pg_sleep",
        full: &["sleep", "--store", "postgres", "--tasks", "5000", "--slots", "500"],
        quick: &["sleep", "--store", "postgres", "--tasks", "5000", "--slots", "500", "--rounds", "1"],
        figures: |v| Some(vec![at_least("efficiency", number(v, "efficiency")?, 0.93)]),
    },
    Bench {
        name: "pg_enqueue",
        full: &["enqueue", "--store", "postgres"],
        quick: &["enqueue", "--store", "postgres", "--rounds", "1"],
        figures: |v| {
            Some(vec![
                at_least("batch / COPY", number(v, "batch_ratio")?, 0.7),
                at_least("64 callers / one by one", number(v, "ratio")?, 5.0),
            ])
        },
    },
    Bench {
        name: "pg_latency",
        full: &["latency", "--store", "postgres", "--tasks", "1000"],
        quick: &["latency", "--store", "postgres", "--tasks", "300"],
        figures: |v| {
            Some(vec![
                printed("p50_ms (see bench-peers)", number(v, "p50_ms")?),
                at_most("p99_ms", number(v, "p99_ms")?, 10.0),
            ])
        },
    },
    Bench {
        name: "pg_remote_latency",
        full: &["latency", "--store", "postgres", "--remote", "--tasks", "1000"],
        quick: &["latency", "--store", "postgres", "--remote", "--tasks", "300"],
        figures: remote_latency,
    },
    Bench {
        name: "pg_affinity",
        full: &["affinity", "--store", "postgres", "--rounds", "9"],
        quick: &["affinity", "--store", "postgres", "--rounds", "1"],
        figures: affinity,
    },
    Bench {
        name: "pg_remote_drain",
        full: &["drain", "--store", "postgres", "--remote", "--tasks", "200000"],
        quick: &["drain", "--store", "postgres", "--remote", "--tasks", "50000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("over gRPC / direct", number(v, "ratio")?, 0.7)]),
    },
    Bench {
        name: "pg_failures",
        full: &["failures", "--store", "postgres"],
        quick: &["failures", "--store", "postgres", "--tasks", "20000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("failing / succeeding", number(v, "ratio")?, 0.8)]),
    },
    Bench {
        name: "pg_bloat",
        // Two minutes instead of ten; decision 0048 has the figures of the long run.
        full: &["bloat", "--store", "postgres", "--seconds", "120"],
        quick: &["bloat", "--store", "postgres", "--seconds", "30", "--held-seconds", "20"],
        figures: |v| {
            let held = v.get("held")?;
            Some(vec![
                at_least("last / first", number(v, "ratio")?, 0.95),
                at_most("dead rows", number(v, "dead_rows_max")?, 200_000.0),
                at_most("table / loaded", number(v, "table_growth")?, 4.0),
                at_least("snapshot held / before", number(held, "ratio")?, 0.9),
                at_most("back after, s", number(held, "back_s")?, 10.0),
            ])
        },
    },
    Bench {
        name: "pg_backlog",
        full: &["backlog", "--store", "postgres"],
        quick: &[
            "backlog",
            "--store",
            "postgres",
            "--waiting",
            "100000",
            "--claims",
            "300",
            "--finished",
            "100000",
        ],
        figures: |v| {
            let p99 = |name: &str| {
                let cases = v
                    .as_array()?
                    .iter()
                    .filter(|case| case.get("case").and_then(Value::as_str) == Some(name));
                cases.map(|case| number(case, "p99_ms")).collect::<Option<Vec<f64>>>()
            };
            let ready = p99("ready")?;
            let least = ready.first().copied()?;
            let others = ["ready", "foreign_kind_in_front", "paused_queue", "jobs_at_their_limit"];
            let others = others.map(p99).into_iter().flatten().flatten();
            Some(vec![
                at_most("worst p99 / smallest", others.fold(0.0, f64::max) / least, 2.0),
                at_most("held horizon / without", p99("held_horizon")?.first()? / least, 3.0),
                at_most("10 M finished / without", p99("finished_rows")?.first()? / least, 3.0),
            ])
        },
    },
    Bench {
        name: "pg_jobs",
        full: &["jobs", "--store", "postgres"],
        quick: &["jobs", "--store", "postgres", "--jobs", "300", "--rounds", "1"],
        figures: |v| jobs(v, 0.4),
    },
    Bench {
        name: "pg_fleet",
        full: &["fleet", "--store", "postgres", "--workers", "1,2,4,8", "--rounds", "7"],
        quick: &["fleet", "--store", "postgres", "--workers", "1,4,8", "--tasks", "50000", "--rounds", "1"],
        figures: |v| {
            let rows = v.as_array()?;
            let (first, last) = (rows.first()?, rows.last()?);
            let least = rows.iter().filter_map(|row| number(row, "min_share")).fold(f64::INFINITY, f64::min);
            let most = rows.iter().filter_map(|row| number(row, "max_share")).fold(0.0, f64::max);
            Some(vec![
                at_least("8 workers / 1", number(last, "per_second")? / number(first, "per_second")?, 0.8),
                at_least("smallest share", least, 0.85),
                at_most("largest share", most, 1.15),
            ])
        },
    },
    Bench {
        name: "pg_coordinators",
        full: &["fleet", "--store", "postgres", "--coordinators"],
        quick: &["fleet", "--store", "postgres", "--coordinators"],
        figures: |v| {
            let rows = v.as_array()?;
            let ratio = |key: &str| Some(number(rows.get(1)?, key)? / number(rows.first()?, key)?);
            Some(vec![
                printed("claim p99, 64 / 1", ratio("claim_p99_ms")?),
                printed("server CPU a task, 64 / 1", ratio("server_cpu_us_per_task")?),
            ])
        },
    },
    Bench {
        name: "pg_idle",
        full: &["fleet", "--store", "postgres", "--idle"],
        quick: &["fleet", "--store", "postgres", "--idle"],
        figures: |v| {
            Some(vec![
                at_most("statements/s, LISTEN", number(v, "statements_per_second")?, 2.0),
                at_most("statements/s, polling", number(v, "statements_per_second_polling")?, 12.0),
                at_most("claims_per_task", number(v, "claims_per_task")?, 2.0),
            ])
        },
    },
];

/// How much a figure that must not grow may still grow over the last quarter of a long run, as a share of
/// its mean.
const SLOPE_MAX: f64 = 0.05;

/// A mixed load while workers are killed. A run of a few minutes has not filled its history yet, so only
/// long runs have slopes.
fn soak(value: &Value) -> Option<Vec<Figure>> {
    let slopes = value.get("slopes")?;
    let slope = |name: &'static str, key: &str| {
        let slope = number(slopes, key)?;
        Some(if number(value, "minutes")? < 20.0 {
            printed(name, slope)
        } else {
            at_most(name, slope, SLOPE_MAX)
        })
    };
    Some(vec![
        at_most("audit", number(value, "audit")?, 0.0),
        at_most("unfinished", number(value, "unfinished")?, 0.0),
        slope("memory, last quarter", "rss")?,
        slope("open files", "open_files")?,
        slope("live async tasks", "async_tasks")?,
        slope("store", "store")?,
        slope("write-ahead log", "wal")?,
    ])
}

/// Tasks behind many small limits, compared with the same tasks without jobs.
fn jobs(value: &Value, bar: f64) -> Option<Vec<Figure>> {
    Some(vec![
        printed("held_at_start", number(value, "held_at_start")?),
        at_least("with jobs / without", number(value, "ratio")?, bar),
    ])
}

pub(super) fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}
