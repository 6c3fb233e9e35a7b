//! The files of `ops/`: all names in them exist, and every alert is tested.

use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

use serde_json::Value;
use windlass::telemetry::names::{self, Kind, Metric};

/// Runs promtool in the folder of the rules.
fn promtool(arguments: &[&str]) -> Output {
    let program = windlass_scratch::promtool().unwrap();
    let folder = e2e::workspace_root().join("ops/prometheus");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

/// Every expression of the dashboard with the title of its panel.
pub fn dashboard() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&e2e::read("ops/grafana/windlass.json")).unwrap();
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((title.to_owned(), target["expr"].as_str().unwrap().to_owned()));
        }
    }
    found
}

/// The expression of an alert.
pub fn rule(alert: &str) -> String {
    let rules = e2e::read("ops/prometheus/alerts.yml");
    let lines = rules.lines().map(str::trim).skip_while(|line| *line != format!("- alert: {alert}"));
    let expression: Vec<&str> = lines
        .skip_while(|line| *line != "expr: >-")
        .skip(1)
        .take_while(|line| !line.starts_with("for: "))
        .collect();
    assert!(!expression.is_empty(), "{alert}");
    expression.join(" ")
}

/// The names of Windlass metrics in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_ours = |word: &&str| word.starts_with("windlass_") || word.starts_with("worker_");
    words.filter(is_ours).map(str::to_owned).collect()
}

/// The names of the series of a metric.
fn series(metric: &Metric) -> Vec<String> {
    match metric.kind {
        Kind::Histogram(_) => {
            ["_bucket", "_sum", "_count"].iter().map(|suffix| format!("{}{suffix}", metric.name)).collect()
        }
        Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
    }
}

#[test]
fn the_dashboard_and_the_alerts_name_metrics_that_exist() {
    let known: BTreeSet<String> = names::ALL.iter().flat_map(|metric| series(metric)).collect();
    for (title, query) in dashboard() {
        for name in names_in(&query) {
            assert!(known.contains(&name), "{title}: {name}");
        }
    }
    let rules = e2e::read("ops/prometheus/alerts.yml");
    let code = rules.lines().filter(|line| !line.trim_start().starts_with('#'));
    for name in names_in(&code.collect::<Vec<_>>().join("\n")) {
        assert!(known.contains(&name), "{name}");
    }
}

#[test]
fn every_metric_of_the_table_is_on_the_dashboard() {
    let shown: BTreeSet<String> = dashboard().iter().flat_map(|(_, query)| names_in(query)).collect();
    for metric in names::ALL {
        assert!(series(metric).iter().any(|name| shown.contains(name)), "{} is on no panel", metric.name);
    }
}

#[test]
fn every_rule_loads_and_the_scrape_example_too() {
    for arguments in [["check", "rules", "alerts.yml"], ["check", "config", "prometheus.yml"]] {
        let output = promtool(&arguments);
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn every_alert_fires_only_in_its_own_case() {
    let output = promtool(&["test", "rules", "tests/alerts.yml"]);
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    let (rules, tests) =
        (e2e::read("ops/prometheus/alerts.yml"), e2e::read("ops/prometheus/tests/alerts.yml"));
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: ")).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        for way in ["fires", "rests"] {
            assert!(tests.contains(&format!("- name: \"{alert} {way}: ")), "no case in which {alert} {way}");
        }
    }
}
