//! The real Prometheus scrapes a server under load: every query of the dashboard has data, and the rules are
//! evaluated.

use e2e::{http::Api, until};
use serde_json::Value;
use windlass_scratch::Prometheus;

use crate::{consumer, load, ops};

/// The window of rates, in place of Grafana's: many times the scrape interval.
const RATE_WINDOW: &str = "20s";

/// The scrape example with another target and shorter intervals.
fn configuration(addresses: [&str; 2]) -> String {
    let targets = addresses.map(|address| format!("'{}'", address.strip_prefix("http://").unwrap()));
    let example = e2e::read("ops/prometheus/prometheus.yml");
    let changed = example.replace("'127.0.0.1:7878', '127.0.0.1:9187'", &targets.join(", "));
    let changed = changed.replace("_interval: 15s", "_interval: 1s");
    assert!(targets.iter().all(|target| changed.matches(target).count() == 1), "{changed}");
    assert_eq!(changed.matches("_interval: 1s").count(), 2);
    changed
}

fn encoded(query: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    query.bytes().map(letter).collect()
}

/// The numeric values of a query.
async fn values(api: &Api, query: &str) -> Vec<f64> {
    let query = query.replace("$__rate_interval", RATE_WINDOW);
    let answer = api.get(&format!("/api/v1/query?query={}", encoded(&query))).await.unwrap();
    assert_eq!(answer.body["status"], "success", "{query}: {answer:?}");
    let rows = answer.body["data"]["result"].as_array().unwrap();
    let number = |row: &Value| row["value"][1].as_str()?.parse::<f64>().ok().filter(|n| !n.is_nan());
    rows.iter().filter_map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_has_data_and_every_rule_is_evaluated() {
    let loaded = load::start().await;
    let consuming = consumer::start().await;
    let configuration = configuration([&loaded.up.address, &consuming.address]);
    let rules = e2e::read("ops/prometheus/alerts.yml");
    let prometheus = tokio::task::spawn_blocking(move || {
        Prometheus::start(&configuration, &[("alerts.yml", rules.as_str())]).unwrap()
    })
    .await
    .unwrap();
    let api = Api::new(prometheus.url());
    let queries = ops::dashboard();
    assert!(queries.len() > 40, "{}", queries.len());
    for (title, query) in queries {
        until(async || {
            let has_data = !values(&api, &query).await.is_empty();
            if has_data { Ok(()) } else { Err(format!("{title}: {query} has no data")) }
        })
        .await
        .unwrap();
    }
    // The job's own name arrives unchanged, not renamed because of the scrape job.
    let query = format!("windlass_job_concurrency{{job_name={:?},job=\"windlass\"}}", load::HOSTILE_JOB);
    assert_eq!(values(&api, &query).await, [2.0]);
    // The rule about a silent consumer finds the silent one and no other, on real data.
    let rule = ops::rule("WindlassConsumerSilent").replace("[10m]", "[15s]");
    let stuck = format!(
        "({rule}) and on (queue) label_replace(vector(1), \"queue\", \"{}\", \"\", \"\")",
        consuming.stuck
    );
    until(async || {
        let (all, found) = (values(&api, &rule).await, values(&api, &stuck).await);
        let is_right = all.len() == 1 && found.len() == 1;
        if is_right { Ok(()) } else { Err(format!("{rule}: {all:?}, of the stuck queue {found:?}")) }
    })
    .await
    .unwrap();
    let rules = until(async || {
        let answer = api.get("/api/v1/rules").await.unwrap().body;
        let rules = answer["data"]["groups"][0]["rules"].as_array().unwrap().clone();
        match rules.iter().find(|rule| rule["health"] != "ok") {
            Some(rule) => Err(rule.to_string()),
            None => Ok(rules),
        }
    })
    .await
    .unwrap();
    let shown = e2e::read("ops/prometheus/alerts.yml").matches("- alert: ").count();
    assert_eq!(rules.len(), shown);
    let targets = api.get("/api/v1/targets").await.unwrap().body;
    let target = &targets["data"]["activeTargets"][0];
    assert_eq!((target["health"].as_str(), target["lastError"].as_str()), (Some("up"), Some("")));
}
