//! The figures as a table for people.

use std::fmt::Write as _;

use serde_json::Value;

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:ident, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}

pub(super) fn everything(figures: &Value) -> String {
    let mut out = String::new();
    line!(
        out,
        "{:<28} {:>10} {:>12} {:>8}",
        "handler of 100 ms, workers",
        "per second",
        "of workers",
        "p95 ms"
    );
    for row in figures.get("handlers_100ms").and_then(Value::as_array).into_iter().flatten() {
        let (workers, rate) = (number(row, "workers"), number(row, "per_second"));
        let share = rate / (workers / 0.1) * 100.0;
        line!(out, "{workers:<28} {rate:>10.1} {share:>10.1} % {:>8.1}", number(row, "p95_ms"));
    }
    if let Some(noop) = figures.get("noop") {
        let (rate, bare) = (number(noop, "per_second"), number(noop, "ceiling_per_second"));
        line!(out, "\n{:<28} {:>10} {:>12} {:>8}", "handler of nothing", "per second", "bare lapin", "ratio");
        line!(out, "{:<28} {rate:>10.0} {bare:>12.0} {:>8.3}", "", number(noop, "ratio"));
    }
    if let Some(compared) = figures.get("sequential_and_concurrent") {
        let (one, many) =
            (number(compared, "sequential_per_second"), number(compared, "concurrent_per_second"));
        line!(out, "\n{:<28} {:>10} {:>12} {:>8}", "handler of 10 ms", "1 worker", "32 workers", "ratio");
        line!(out, "{:<28} {one:>10.0} {many:>12.0} {:>8.1}", "", number(compared, "ratio"));
    }
    line!(out, "\n{:<28} {:>10}", "pool and buffer, workers", "bytes");
    for workers in ["1", "32", "100"] {
        let bytes = figures.get("pool_bytes").map_or(f64::NAN, |bytes| number(bytes, workers));
        line!(out, "{workers:<28} {bytes:>10}");
    }
    out
}

pub(super) fn adaptive(figures: &Value) -> String {
    let mut out = String::new();
    line!(out, "between {} and {} workers", number(figures, "minimum"), number(figures, "cap"));
    line!(out, "\n{:>10} {:>8} {:>12}", "handler ms", "limit", "settled in s");
    for phase in figures.get("phases").and_then(Value::as_array).into_iter().flatten() {
        let (ms, limit, after) =
            (number(phase, "handler_ms"), number(phase, "limit"), number(phase, "settled_s"));
        line!(out, "{ms:>10} {limit:>8} {after:>12}");
    }
    line!(out, "\n{:>8} {:>10} {:>8} {:>8} {:>8}", "second", "handler ms", "limit", "running", "waiting");
    for point in figures.get("series").and_then(Value::as_array).into_iter().flatten() {
        let [ms, limit, running, waiting] =
            ["handler_ms", "limit", "running", "waiting"].map(|key| number(point, key));
        line!(out, "{:>8.2} {ms:>10} {limit:>8} {running:>8} {waiting:>8}", number(point, "second"));
    }
    out
}

/// One figure a line.
pub(super) fn plain(figures: &Value) -> String {
    let mut out = String::new();
    for (name, value) in figures.as_object().into_iter().flatten() {
        line!(out, "{name:<24} {value}");
    }
    out
}

fn number(value: &Value, key: &str) -> f64 {
    value.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN)
}
