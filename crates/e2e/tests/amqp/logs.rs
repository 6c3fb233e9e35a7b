//! JSON log lines of `windlass consume`: sizes at the start, the worker with every failure, and never the
//! message.

use e2e::process::{END_LIMIT, Process, START_LIMIT, Stream};
use rustix::process::Signal;
use serde_json::{Value, json};
use windlass_amqp::{Consumers, Message, PublisherOptions, Queue};

use crate::rig::{consume_with, name, node};

const SECRET: &str = "correct-horse-battery";

fn lines(process: &Process) -> Vec<Value> {
    process.text(Stream::Err).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_carry_the_worker_and_the_sizes_and_never_the_message() {
    let (broker, queue, folder) = (node(), name("lines"), tempfile::tempdir().unwrap());
    // No process listens on port 1.
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = 2\nprefetch = 30\n\
         event_type = \"order.created\"\nto = \"http\"\nurl = \"http://127.0.0.1:1/{SECRET}\"\n"
    );
    let mut process = consume_with(
        folder.path(),
        &broker.url(),
        &lists,
        &["--log-format", "json", "--log-level", "info"],
        &[],
    );
    let publishing = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    publisher.publish("", &queue, &Message::json(&SECRET).unwrap()).await.unwrap();
    let is_failure = |line: &str| line.contains("a delivery was").then_some(());
    process.wait_for(START_LIMIT, is_failure).unwrap();
    process.signal(Signal::TERM).unwrap();
    assert_eq!(process.wait(END_LIMIT).unwrap().code(), Some(0), "{}", process.transcript());
    process.join_readers();
    publishing.stop(START_LIMIT).await;

    let lines = lines(&process);
    let started: Vec<_> = lines.iter().filter(|line| line["message"] == "consuming").collect();
    assert_eq!(started.len(), 1, "{lines:?}");
    let sizes = ["queue", "event_type", "workers", "prefetch"].map(|field| started[0][field].clone());
    assert_eq!(sizes, [json!(queue), json!("order.created"), json!(2), json!(30)], "{}", started[0]);
    let told =
        |line: &&Value| line["message"].as_str().is_some_and(|text| text.starts_with("a delivery was"));
    let failures: Vec<_> = lines.iter().filter(told).collect();
    assert_eq!(failures.len(), 1, "{lines:?}");
    let worker = failures[0]["worker"].as_u64();
    assert!(worker.is_some_and(|worker| worker < 2), "{}", failures[0]);
    assert_eq!((&failures[0]["queue"], &failures[0]["event_type"]), (&json!(queue), &json!("order.created")));
    assert!(!process.transcript().contains(SECRET), "{}", process.transcript());
}
