//! `windlass doctor` on a broker, its queues, and the pool that handlers share.

use std::{fs, path::Path};

use e2e::process::{self, Said};
use serde_json::{Value, json};

use crate::rig::{name, node, publish};

/// Runs the doctor in a folder with this configuration.
fn doctor(folder: &Path, url: &str, lists: &str) -> Said {
    let file = folder.join("windlass.toml");
    let store = format!("store = \"sqlite:{}/windlass.db\"\n", folder.display());
    fs::write(&file, format!("{store}{lists}")).unwrap();
    let mut command = process::command(process::windlass().unwrap());
    command.args(["doctor", "--json", "--config"]).arg(&file).current_dir(folder);
    command.env("WINDLASS_AMQP_URL", url);
    process::run(command).unwrap()
}

/// Level and detail of every finding with this name.
fn findings(said: &Said, name: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let of_name = report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name);
    of_name.map(|check| json!([check["level"], check["detail"]])).collect()
}

fn consumer(queue: &str, workers: i32) -> String {
    format!(
        "[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = {workers}\nto = \"http\"\nurl = \"http://127.0.0.1/\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_the_broker_its_queues_and_the_pool_size() {
    let (broker, folder) = (node(), tempfile::tempdir().unwrap());
    let (there, later) = (name("doctor-there"), name("doctor-later"));
    publish(&broker.url(), &there, 3).await;
    let lists = format!(
        "[[amqp.queue]]\nname = \"{there}\"\n[[amqp.queue]]\nname = \"{later}\"\n{}{}",
        consumer(&there, 8),
        consumer(&later, 32)
    );
    let said = doctor(folder.path(), &broker.url(), &lists);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(findings(&said, "store")[0][0], "note", "a consumer that only posts needs no store: {said:?}");
    let found = findings(&said, "broker");
    assert_eq!((found.len(), &found[0][0]), (1, &json!("ok")), "{said:?}");
    assert!(found[0][1].as_str().unwrap().contains(&format!("127.0.0.1:{}", broker.port())), "{said:?}");
    let mut queues = findings(&said, "amqp queue");
    queues.sort_by_key(|finding| finding[1].to_string());
    let wanted = [
        json!(["note", format!("{later}: not there yet; `windlass consume` makes it")]),
        json!(["ok", format!("{there}: 3 messages wait, 0 consumers")]),
    ];
    assert_eq!(queues, wanted);
    let pool = "40 workers: a pool that their handlers share needs 50 places, 25 of them idle";
    assert_eq!(findings(&said, "amqp pool"), [json!(["ok", pool])]);
    assert!(!folder.path().join("windlass.db").exists(), "the doctor creates no store");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_missing_queue_and_an_impossible_size() {
    let (broker, folder) = (node(), tempfile::tempdir().unwrap());
    let missing = name("doctor-missing");
    let said = doctor(folder.path(), &broker.url(), &consumer(&missing, -1));
    assert_eq!(said.code, Some(1), "{said:?}");
    let lacks = format!("{missing}: not there, and no [[amqp.queue]] declares it");
    assert_eq!(findings(&said, "amqp queue"), [json!(["wrong", lacks])]);
    let found = findings(&said, "consumer");
    let detail = found[0][1].as_str().unwrap();
    assert!(found[0][0] == "wrong" && detail.contains(&missing) && detail.contains("-1"), "{said:?}");
}

#[test]
fn doctor_reports_a_missing_broker_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let said = doctor(folder.path(), "amqp://user:s3cret@127.0.0.1:1/%2f", &consumer("q", 4));
    assert_eq!(said.code, Some(1), "{said:?}");
    let found = findings(&said, "broker");
    assert!(found[0][0] == "wrong" && found[0][1].as_str().unwrap().contains("127.0.0.1:1"), "{said:?}");
    assert!(!format!("{said:?}").contains("s3cret"), "{said:?}");
}
