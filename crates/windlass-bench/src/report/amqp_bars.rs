//! The bars of `windlass-bench amqp`.

use serde_json::Value;

use super::bars::{Bench, Figure, at_least, at_most, number, printed};

/// The benches on a private RabbitMQ.
pub(super) const BENCHES: &[Bench] = &[
    Bench {
        name: "amqp",
        full: &["amqp"],
        quick: &["amqp", "--messages", "30000", "--seconds", "1", "--rounds", "1"],
        figures: everything,
    },
    Bench {
        name: "amqp_adaptive",
        full: &["amqp", "--adaptive"],
        quick: &["amqp", "--adaptive"],
        figures: adaptive,
    },
    Bench {
        name: "amqp_restart",
        full: &["amqp", "--restart"],
        quick: &["amqp", "--restart", "--messages", "100000"],
        figures: restart,
    },
];

fn everything(value: &Value) -> Option<Vec<Figure>> {
    let rows = value.get("handlers_100ms")?.as_array()?;
    let shares: Option<Vec<f64>> =
        rows.iter().map(|row| Some(number(row, "per_second")? * 0.1 / number(row, "workers")?)).collect();
    let latencies: Option<Vec<f64>> = rows.iter().map(|row| number(row, "p95_ms")).collect();
    let bytes = value.get("pool_bytes")?;
    Some(vec![
        at_least("rate / workers, worst", shares?.into_iter().fold(f64::INFINITY, f64::min), 0.97),
        at_most("p95_ms of 100, worst", latencies?.into_iter().fold(0.0, f64::max), 105.0),
        at_least("no-op / bare lapin", number(value.get("noop")?, "ratio")?, 0.9),
        at_most("bytes, 1 worker", number(bytes, "1")?, 3_000.0),
        at_most("bytes, 32 workers", number(bytes, "32")?, 70_000.0),
        at_most("bytes, 100 workers", number(bytes, "100")?, 210_000.0),
        printed("32 workers / 1", number(value, "speedup")?),
    ])
}

fn adaptive(value: &Value) -> Option<Vec<Figure>> {
    let phases = value.get("phases")?.as_array()?;
    let settled: Option<Vec<f64>> = phases.iter().map(|phase| number(phase, "settled_s")).collect();
    let limits: Option<Vec<f64>> = phases.iter().map(|phase| number(phase, "limit")).collect();
    let [quick, slow, again] = limits?.try_into().ok()?;
    Some(vec![
        at_least("least limit", number(value, "least")?, number(value, "minimum")?),
        at_most("greatest limit", number(value, "most")?, number(value, "cap")?),
        at_most("settled_s, worst", settled?.into_iter().fold(0.0, f64::max), 10.0),
        at_least("limit, slow / quick", slow / quick, 2.0),
        at_least("limit, slow / quick again", slow / again, 2.0),
    ])
}

fn restart(value: &Value) -> Option<Vec<Figure>> {
    Some(vec![
        at_most("missing messages", number(value, "missing")?, 0.0),
        at_most("left at the broker", number(value, "left_at_the_broker")?, 0.0),
        at_least("channels", number(value, "channels")?, 2.0),
        at_most("memory, peak / tenth", number(value, "memory_ratio")?, 1.2),
        printed("handled twice", number(value, "repeated")?),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn short(figures: Option<Vec<Figure>>) -> Vec<&'static str> {
        figures.into_iter().flatten().filter(|figure| !figure.ok).map(|figure| figure.name).collect()
    }

    #[test]
    fn the_worst_number_of_workers_counts() {
        let figures = |rate: f64, p95: f64| {
            json!({
                "handlers_100ms": [
                    {"workers": 1, "per_second": 9.9, "p95_ms": 101.0},
                    {"workers": 32, "per_second": rate, "p95_ms": p95},
                ],
                "noop": {"ratio": 0.95},
                "pool_bytes": {"1": 2_000, "32": 30_000, "100": 100_000},
                "speedup": 30.0,
            })
        };
        assert!(everything(&figures(315.0, 103.0)).is_some_and(|figures| figures.len() == 7));
        assert_eq!(short(everything(&figures(315.0, 103.0))), Vec::<&str>::new());
        assert_eq!(
            short(everything(&figures(300.0, 106.0))),
            ["rate / workers, worst", "p95_ms of 100, worst"]
        );
    }

    #[test]
    fn a_limit_that_stays_or_leaves_its_bounds_misses_its_bar() {
        let phase = |limit: u64, settled_s: f64| json!({"limit": limit, "settled_s": settled_s});
        let figures = |slow: u64, most: u64| {
            let phases = [phase(20, 3.0), phase(slow, 4.0), phase(20, 3.0)];
            json!({"minimum": 4, "cap": 100, "least": 4, "most": most, "phases": phases})
        };
        assert_eq!(short(adaptive(&figures(100, 100))), Vec::<&str>::new());
        assert_eq!(
            short(adaptive(&figures(20, 101))),
            ["greatest limit", "limit, slow / quick", "limit, slow / quick again"]
        );
    }
}
