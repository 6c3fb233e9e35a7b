//! Every figure beside its bar, in one table. Each bench runs in a process of its own.

use std::io::Write as _;

use anyhow::Context as _;
use serde_json::{Value, json};

/// A bench with the arguments of a full and of a quick run, and its figures.
struct Bench {
    name: &'static str,
    full: &'static [&'static str],
    quick: &'static [&'static str],
    figures: fn(&Value) -> Option<Vec<Figure>>,
}

/// A figure beside its bar.
struct Figure {
    name: &'static str,
    value: f64,
    bar: String,
    ok: bool,
}

fn at_least(name: &'static str, value: f64, bar: f64) -> Figure {
    Figure { name, value, bar: format!(">= {bar}"), ok: value >= bar }
}

fn at_most(name: &'static str, value: f64, bar: f64) -> Figure {
    Figure { name, value, bar: format!("<= {bar}"), ok: value <= bar }
}

const BENCHES: &[Bench] = &[
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
        figures: |v| {
            let ratio = number(v, "ratio")?;
            Some(vec![Figure { name: "ratio", value: ratio, bar: "printed".into(), ok: ratio > 0.0 }])
        },
    },
    Bench {
        name: "failures",
        full: &["failures"],
        quick: &["failures", "--tasks", "20000", "--rounds", "1"],
        figures: |v| Some(vec![at_least("failing / succeeding", number(v, "ratio")?, 0.8)]),
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
];

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}

/// Runs the benches and prints the table; the exit code is 1 if a figure is short of its bar.
pub(super) fn run(quick: bool, only: &[String], json: bool) -> anyhow::Result<u8> {
    if let Some(unknown) = only.iter().find(|name| !BENCHES.iter().any(|bench| bench.name == **name)) {
        let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
        anyhow::bail!("no bench {unknown:?}; one of {}", known.join(", "));
    }
    let mut out = std::io::stdout().lock();
    let (mut short, mut list) = (false, Vec::new());
    if !json {
        writeln!(out, "{:<58} {:<24} {:>10}  {:<9} verdict", "command", "figure", "value", "bar")?;
    }
    for bench in BENCHES.iter().filter(|bench| only.is_empty() || only.iter().any(|name| name == bench.name))
    {
        let args = if quick { bench.quick } else { bench.full };
        let command = format!("windlass bench {} --json", args.join(" "));
        let figures = measure(args)?;
        for figure in (bench.figures)(&figures).context("the bench printed other keys than expected")? {
            let verdict = if figure.ok { "OK" } else { "SHORT" };
            short |= !figure.ok;
            if json {
                list.push(json!({"command": command, "figure": figure.name, "value": figure.value, "bar": figure.bar, "ok": figure.ok}));
            } else {
                writeln!(
                    out,
                    "{command:<58} {:<24} {:>10.3}  {:<9} {verdict}",
                    figure.name, figure.value, figure.bar
                )?;
            }
        }
        if !json {
            writeln!(out, "    {figures}")?;
            out.flush()?;
        }
    }
    if json {
        writeln!(out, "{}", Value::Array(list))?;
    }
    Ok(u8::from(short))
}

fn measure(args: &[&str]) -> anyhow::Result<Value> {
    let output = std::process::Command::new(std::env::current_exe()?)
        .arg("bench")
        .args(args)
        .arg("--json")
        .output()?;
    anyhow::ensure!(
        output.status.success(),
        "windlass bench {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).context("the bench printed no JSON")
}
