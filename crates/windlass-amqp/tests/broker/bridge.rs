//! From the broker into the store.

use std::collections::BTreeMap;

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use windlass::{Client, store::Filter};
use windlass_amqp::{Bridge, Consumer, Consumers, Message, NameFrom, PublisherOptions, Queue};

use crate::rig::{LIMIT, fill, name, node, wait_for_messages};

#[tokio::test]
async fn delivery_is_acknowledged_after_it_became_one_task() {
    let (broker, queue) = (node(), name("bridge"));
    let client = Client::new(windlass::open("sqlite::memory:").await.unwrap());
    let bridge = Bridge::new(client.clone(), "ship").unwrap().task_queue("parcels").unwrap();
    let bridge = bridge.job(NameFrom::Header("tenant".to_owned())).workflow(NameFrom::RoutingKey);
    let declared = Queue::durable(&queue).with_dead_letters();
    let running =
        Consumers::connect(broker.url()).queue(declared).consume(Consumer::into_store(&queue, bridge));
    let running = running.start().await.unwrap();
    let publisher = running.publisher(PublisherOptions::default());
    let message = |number: u64| Message::json(&number).unwrap().header("tenant", "seven");
    for id in ["a", "b", "a"] {
        publisher.publish("", &queue, &message(1).id(id)).await.unwrap();
    }
    // Another payload under a known id belongs to no task.
    wait_for_messages(&broker, &queue, (0, 0)).await;
    publisher.publish("", &queue, &message(2).id("a")).await.unwrap();
    wait_for_messages(&broker, &format!("{queue}.dead"), (1, 0)).await;
    running.stop(LIMIT).await;
    let page = client.store().tasks(&Filter::default(), None, 100).await.unwrap().tasks;
    assert_eq!(page.len(), 2, "{page:?}");
    for task in &page {
        let record = client.task(task.id).await.unwrap().unwrap();
        assert_eq!((record.lane.kind.as_str(), record.lane.queue.as_str()), ("ship", "parcels"));
        assert_eq!(record.job.unwrap().as_str(), "seven");
        assert_eq!(record.workflow.unwrap().as_str(), queue);
    }
    wait_for_messages(&broker, &queue, (0, 0)).await;
}

#[tokio::test]
async fn message_without_an_id_becomes_a_task_without_a_key() {
    let (broker, queue) = (node(), name("bridge-no-id"));
    let client = Client::new(windlass::open("sqlite::memory:").await.unwrap());
    let bridge = Bridge::new(client.clone(), "ship").unwrap();
    let running = Consumers::connect(broker.url())
        .queue(Queue::durable(&queue))
        .consume(Consumer::into_store(&queue, bridge).workers(2));
    let running = running.start().await.unwrap();
    // The crate's own publisher gives every message an id.
    let connection = Connection::connect(&broker.url(), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    for _ in 0..2 {
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        let sent = channel.basic_publish("".into(), queue.as_str().into(), options, b"7", properties).await;
        sent.unwrap().await.unwrap();
    }
    while running.figures()[0].acked < 2 {
        tokio::task::yield_now().await;
    }
    running.stop(LIMIT).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
    let page = client.store().tasks(&Filter::default(), None, 100).await.unwrap().tasks;
    assert_eq!(page.len(), 2, "nothing says that they are the same");
    for task in &page {
        let record = client.task(task.id).await.unwrap().unwrap();
        assert_eq!((record.key, record.payload.decode::<u64>().unwrap()), (None, 7));
    }
}

#[tokio::test]
async fn repeated_deliveries_become_one_task_per_message() {
    const COUNT: u64 = 500;
    let (broker, queue) = (node(), name("bridge-all"));
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    // The same ids again, like from a publisher that lost its confirms.
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    let client = Client::new(windlass::open("sqlite::memory:").await.unwrap());
    let bridge = Bridge::new(client.clone(), "ship").unwrap();
    let running = Consumers::connect(broker.url()).consume(Consumer::into_store(&queue, bridge).workers(16));
    let running = running.start().await.unwrap();
    wait_for_messages(&broker, &queue, (0, 0)).await;
    running.stop(LIMIT).await;
    let page = client.store().tasks(&Filter::default(), None, 1_000).await.unwrap().tasks;
    let mut payloads = BTreeMap::new();
    for task in &page {
        let record = client.task(task.id).await.unwrap().unwrap();
        *payloads.entry(record.payload.decode::<u64>().unwrap()).or_insert(0) += 1;
    }
    assert_eq!(payloads.len() as u64, COUNT);
    assert!(payloads.values().all(|count| *count == 1));
}
