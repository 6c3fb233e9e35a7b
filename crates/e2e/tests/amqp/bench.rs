//! `windlass-bench amqp` as a real process: small numbers, real figures.

use e2e::process;
use serde_json::Value;

fn figures(arguments: &[&str]) -> Value {
    let mut command = process::bench().unwrap();
    command.args(["amqp", "--json"]).args(arguments);
    let said = process::run(command).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn every_message_is_handled_over_a_restart_of_the_broker() {
    let figures = figures(&["--restart", "--messages", "5000"]);
    for (key, wanted) in [("messages", 5_000), ("missing", 0), ("unknown", 0), ("left_at_the_broker", 0)] {
        assert_eq!(figures[key], wanted, "{key}: {figures}");
    }
    assert!(figures["channels"].as_u64().is_some_and(|channels| channels >= 2), "{figures}");
    assert!(figures["memory_ratio"].as_f64().is_some_and(|ratio| ratio >= 1.0), "{figures}");
}

#[test]
fn bench_has_the_figures_that_its_bars_ask_for() {
    let url = crate::rig::node().url();
    let sizes = ["--rounds", "1", "--seconds", "0.1", "--messages", "500"];
    let figures = figures(&[&sizes[..], &["--amqp", &url]].concat());
    let rows = figures["handlers_100ms"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["workers"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 4, 8, 32, 64]
    );
    let is_positive = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    for row in rows {
        assert!(is_positive(&row["per_second"]) && is_positive(&row["p95_ms"]), "{row}");
    }
    for key in ["per_second", "ceiling_per_second", "ratio"] {
        assert!(is_positive(&figures["noop"][key]), "{figures}");
    }
    assert!(is_positive(&figures["speedup"]), "{figures}");
    // A12: the number of bytes does not depend on the machine.
    for (workers, most) in [("1", 3_000.0), ("32", 70_000.0), ("100", 210_000.0)] {
        let bytes = &figures["pool_bytes"][workers];
        assert!(is_positive(bytes) && bytes.as_f64().unwrap() <= most, "{workers}: {bytes}");
    }
}

#[test]
fn adaptive_bench_prints_the_limit_over_time() {
    let url = crate::rig::node().url();
    let figures = figures(&["--adaptive", "--amqp", &url, "--messages", "200", "--seconds", "1"]);
    let series = figures["series"].as_array().unwrap();
    let limits = || series.iter().map(|point| point["limit"].as_u64().unwrap());
    let bounds = |key: &str| figures[key].as_u64().unwrap();
    assert!(limits().all(|limit| (bounds("minimum")..=bounds("cap")).contains(&limit)), "{figures}");
    assert_eq!((figures["least"].as_u64(), figures["most"].as_u64()), (limits().min(), limits().max()));
    let phases: Vec<_> =
        figures["phases"].as_array().unwrap().iter().map(|one| one["handler_ms"].clone()).collect();
    assert_eq!(phases, [10, 500, 10]);
}
