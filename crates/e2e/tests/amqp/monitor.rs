//! What a monitor sees of `windlass consume`: ready, broker away, draining, short of memory.

use std::time::Duration;

use e2e::{
    http::Api,
    process::{END_LIMIT, Process, START_LIMIT},
    target::Target,
    until,
    up::Up,
};
use rustix::process::Signal;
use serde_json::json;
use windlass_amqp::{Consumers, Message, PublisherOptions, Queue};
use windlass_scratch::Broker;

use crate::rig::{consume_with, look, name, node, publish};

const MONITORED: [&str; 2] = ["--metrics-listen", "127.0.0.1:0"];

fn posted(queue: &str, workers: u32, target: &Target) -> String {
    let url = target.url();
    format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = {workers}\n\
         to = \"http\"\nurl = \"{url}\"\n"
    )
}

fn api(process: &mut Process) -> Api {
    let address = process.wait_for(START_LIMIT, |line| {
        let at = line.find("http://127.0.0.1:")?;
        line[at..].trim().strip_suffix("/metrics").map(str::to_owned)
    });
    Api::new(address.unwrap())
}

/// Waits for an answer of `/readyz` and returns its text.
async fn until_ready(api: &Api, status: u16) -> String {
    until(async || {
        let answer = api.get("/readyz").await.unwrap();
        if answer.status == status { Ok(answer.body.to_string()) } else { Err(format!("{answer:?}")) }
    })
    .await
    .unwrap()
}

async fn has_line(api: &Api, line: &str) -> Result<(), String> {
    let page = api.get("/metrics").await.unwrap().body.as_str().unwrap().to_owned();
    if page.lines().any(|shown| shown == line) { Ok(()) } else { Err(format!("{line} in {page}")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_its_broker_is_not_ready() {
    let broker = tokio::task::spawn_blocking(|| Broker::start().unwrap()).await.unwrap();
    let (folder, queue) = (tempfile::tempdir().unwrap(), name("away"));
    let target = Target::start(Duration::ZERO).await.unwrap();
    let mut process =
        consume_with(folder.path(), &broker.url(), &posted(&queue, 2, &target), &MONITORED, &[]);
    let api = api(&mut process);
    until_ready(&api, 200).await;
    let consuming = |is: u8| format!("windlass_amqp_consuming{{queue=\"{queue}\",event_type=\"\"}} {is}");
    has_line(&api, &consuming(1)).await.unwrap();
    broker.stop().unwrap();
    let told = until_ready(&api, 503).await;
    assert!(told.contains("consumers") && told.contains(&queue), "{told}");
    assert_eq!(api.get("/healthz").await.unwrap().status, 200, "the process itself lives");
    has_line(&api, &consuming(0)).await.unwrap();
    broker.start_again().unwrap();
    until_ready(&api, 200).await;
    has_line(&api, &consuming(1)).await.unwrap();
    assert_eq!(api.get("/v1/tasks").await.unwrap().status, 404, "nothing but what a monitor asks for");

    target.hold();
    publish(&broker.url(), &queue, 1).await;
    until(async || if target.book().open == 1 { Ok(()) } else { Err("nothing is posted".to_owned()) })
        .await
        .unwrap();
    process.signal(Signal::TERM).unwrap();
    let told = until_ready(&api, 503).await;
    assert!(told.contains("draining"), "{told}");
    target.release();
    assert_eq!(process.wait(END_LIMIT).unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_handled_despite_low_memory() {
    const MESSAGES: usize = 40;
    let (broker, folder, queue) = (node(), tempfile::tempdir().unwrap(), name("pressed"));
    publish(&broker.url(), &queue, MESSAGES).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.hold();
    // Less than any process uses: memory is short from the start and stays so.
    let variables = [("WINDLASS_MEMORY_LIMIT", "1MiB")];
    let lists = posted(&queue, 20, &target);
    let mut process = consume_with(folder.path(), &broker.url(), &lists, &MONITORED, &variables);
    let api = api(&mut process);
    let labels = format!("{{queue=\"{queue}\",event_type=\"\"}}");
    until(async || {
        has_line(&api, &format!("windlass_amqp_workers_allowed{labels} 1")).await?;
        has_line(&api, &format!("windlass_amqp_workers_busy{labels} 1")).await
    })
    .await
    .unwrap();
    let page = api.get("/metrics").await.unwrap().body.as_str().unwrap().to_owned();
    assert!(page.contains("windlass_backpressure_factor{reason=\"memory\"} 0."), "{page}");
    process
        .wait_for(START_LIMIT, |line| {
            let is_told = line.contains("admission changed what may run") && line.contains("memory_stop");
            is_told.then_some(())
        })
        .unwrap();
    assert_eq!(target.book().open, 1);
    target.release();
    until(async || {
        has_line(
            &api,
            &format!(
                "windlass_amqp_acks_total{{queue=\"{queue}\",event_type=\"\",result=\"ack\"}} {MESSAGES}"
            ),
        )
        .await
    })
    .await
    .unwrap();
    assert_eq!(target.book().strangers as usize, MESSAGES, "each was posted once");
    process.signal(Signal::TERM).unwrap();
    assert_eq!(process.wait(END_LIMIT).unwrap().code(), Some(0));
    assert_eq!(look(&broker.url(), &queue).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefetch_too_large_for_the_memory_is_lowered() {
    let (broker, folder, queue) = (node(), tempfile::tempdir().unwrap(), name("heavy"));
    let declared = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let publisher = declared.publisher(PublisherOptions::default());
    let message = Message::bytes("x".repeat(300_000));
    for _ in 0..5 {
        publisher.publish("", &queue, &message).await.unwrap();
    }
    let target = Target::start(Duration::ZERO).await.unwrap();
    let lists = posted(&queue, 1, &target)
        .replace("workers = 1", "workers = 1\nprefetch = 100\nevent_type = \"scan\"");
    // A tenth of it is room for 69 of these messages, of which a quarter is left free.
    let variables = [("WINDLASS_MEMORY_LIMIT", "200MiB")];
    let mut process = consume_with(folder.path(), &broker.url(), &lists, &MONITORED, &variables);
    let api = api(&mut process);
    let said =
        process.wait_for(START_LIMIT, |line| line.contains("prefetch lowered").then(|| line.to_owned()));
    let said = said.unwrap();
    for part in ["prefetch=52", "before=100", "mean_bytes=300000", &queue, "scan"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    until(async || {
        has_line(&api, &format!("windlass_amqp_prefetch{{queue=\"{queue}\",event_type=\"scan\"}} 52")).await
    })
    .await
    .unwrap();
    declared.stop(END_LIMIT).await;
    process.signal(Signal::TERM).unwrap();
    assert_eq!(process.wait(END_LIMIT).unwrap().code(), Some(0));
    assert_eq!(look(&broker.url(), &queue).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_shows_the_consumers_that_report_to_it() {
    let (folder, queue) = (tempfile::tempdir().unwrap(), name("reported"));
    let broker = node();
    let up = Up::on::<&str>(&folder.path().join("windlass.db"), []).unwrap();
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = 3\n\
         to = \"store\"\nkind = \"echo\"\n"
    );
    let mut process = consume_with(folder.path(), &broker.url(), &lists, &[], &[]);
    publish(&broker.url(), &queue, 5).await;
    let api = up.api();
    let processes =
        async || api.get("/v1/consumers").await.unwrap().body["processes"].as_array().unwrap().clone();
    let shown = until(async || {
        let shown = processes().await;
        match shown.first().map(|process| &process["consumers"][0]) {
            Some(consumer) if consumer["acked"] == 5 => Ok(shown.clone()),
            _ => Err(format!("{shown:?}")),
        }
    })
    .await
    .unwrap();
    let consumer = &shown[0]["consumers"][0];
    assert_eq!((&consumer["queue"], &consumer["workers"]), (&json!(queue), &json!(3)));
    assert_eq!((&consumer["state"], &consumer["reconnects"]), (&json!("consuming"), &json!(0)));
    assert_eq!((&shown[0]["live"], shown[0]["pid"].as_u64()), (&json!(true), Some(u64::from(process.pid()))));
    process.signal(Signal::TERM).unwrap();
    assert_eq!(process.wait(END_LIMIT).unwrap().code(), Some(0));
    assert_eq!(processes().await, Vec::<serde_json::Value>::new(), "it has said that it stopped");
}
