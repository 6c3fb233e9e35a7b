//! Faults of the broker: the consumer reconnects on its own, with its prefetch, and no message is lost.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, Semaphore};
use windlass_amqp::{Consumer, Consumers, Delivery, Error, Message, PublisherOptions, Queue, Running, State};
use windlass_scratch::{Broker, Node};

use crate::rig::{LIMIT, PATIENT, Record, blocking, drained, fill, name, node, recorder, wait_for_messages};

/// A broker for this test only, because the test stops it.
async fn own_broker() -> Arc<Broker> {
    Arc::new(tokio::task::spawn_blocking(|| Broker::start().unwrap()).await.unwrap())
}

/// Prefetch of the consumers of a queue, as the broker says.
async fn prefetches(node: &Node, queue: &str) -> Vec<String> {
    let (node, queue) = (node.clone(), queue.to_owned());
    blocking(move || {
        let rows = node.ctl(&["list_consumers", "queue_name", "prefetch_count"]).unwrap();
        rows.lines().filter_map(|row| row.strip_prefix(&queue).map(|rest| rest.trim().to_owned())).collect()
    })
    .await
}

/// Every number was handled.
fn assert_complete(counts: &BTreeMap<u64, u32>, wanted: u64) {
    let missing: Vec<u64> = (0..wanted).filter(|number| !counts.contains_key(number)).collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
}

/// Each repeated number came as a redelivery of the broker. This holds only without a crash of the broker: a
/// crash forgets which messages were delivered and which answers came.
fn assert_repeats_are_redeliveries(record: &Record, running: &Running) {
    // Read the handled numbers first: a delivery is counted before its handler starts.
    let counts = record.counts();
    let figures = running.figures().remove(0);
    let handled: u64 = counts.values().map(|count| u64::from(*count)).sum();
    let repeats = handled - counts.len() as u64;
    assert!(repeats <= figures.redeliveries, "{repeats} of {handled}: {figures:?}");
}

/// Both checks.
fn compare(record: &Record, wanted: u64, running: &Running) {
    assert_complete(&record.counts(), wanted);
    assert_repeats_are_redeliveries(record, running);
}

async fn publish_numbers(running: &Running, queue: &str, numbers: std::ops::Range<u64>) {
    let publisher = running.publisher(PATIENT);
    for number in numbers {
        publisher.publish("", queue, &Message::json(&number).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn consumer_and_publisher_survive_a_restart_and_a_kill() {
    const COUNT: u64 = 3_000;
    let (broker, queue, record) = (own_broker().await, name("restart"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    let consumer = recorder(&queue, &record).prefetch(40);
    let running = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let running = running.start().await.unwrap();
    record.wait_for(200).await;
    let server = Arc::clone(&broker);
    blocking(move || server.stop().and_then(|()| server.start_again()).unwrap()).await;
    // Published while the consumer reconnects; the publisher reconnects on its own.
    publish_numbers(&running, &queue, COUNT..COUNT + 50).await;
    record.wait_for(400).await;
    // On a busy machine all messages may have come before the restart. Wait for the reconnect, so that the
    // crash hits a consumer that is back.
    while running.figures()[0].sessions < 2 {
        tokio::task::yield_now().await;
    }
    assert_repeats_are_redeliveries(&record, &running);
    let server = Arc::clone(&broker);
    blocking(move || server.kill().and_then(|()| server.start_again()).unwrap()).await;
    publish_numbers(&running, &queue, COUNT + 50..COUNT + 100).await;
    record.wait_for(COUNT as usize + 100).await;
    assert_eq!(prefetches(broker.node(), &queue).await, ["40"], "one consumer, with its prefetch");
    assert_complete(&record.counts(), COUNT + 100);
    assert!(running.figures()[0].sessions >= 3, "{running:?}");
    running.stop(LIMIT).await;
    wait_for_messages(broker.node(), &queue, (0, 0)).await;
    blocking(move || drop(broker)).await;
}

#[tokio::test]
async fn result_of_a_lost_channel_is_not_sent_on_the_next_one() {
    let (broker, queue) = (node(), name("stale"));
    fill(&broker.url(), Queue::durable(&queue), &queue, 1).await;
    let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)));
    let (started, opened, called) = (Arc::new(Notify::new()), Arc::clone(&gate), Arc::clone(&calls));
    let begun = Arc::clone(&started);
    let on = move |_: u64| {
        let (opened, called, begun) = (Arc::clone(&opened), Arc::clone(&called), Arc::clone(&begun));
        async move {
            called.fetch_add(1, Ordering::SeqCst);
            begun.notify_one();
            opened.acquire().await.unwrap().forget();
        }
    };
    let consumer = Consumer::new(&queue, on).workers(2);
    let running = Consumers::connect(broker.url()).name(&queue).consume(consumer).start().await.unwrap();
    started.notified().await;
    close_connections(&broker, &queue).await;
    // The message is delivered again while its first handler still runs.
    started.notified().await;
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    gate.add_permits(1);
    while running.figures()[0].unanswered == 0 && running.figures()[0].acked == 0 {
        tokio::task::yield_now().await;
    }
    let figures = running.figures().remove(0);
    // The first permit goes to the handler of the lost channel.
    assert_eq!((figures.unanswered, figures.acked, figures.sessions), (1, 0, 2));
    wait_for_messages(&broker, &queue, (0, 1)).await;
    gate.add_permits(1);
    wait_for_messages(&broker, &queue, (0, 0)).await;
    running.stop(LIMIT).await;
}

/// Closes the connections of a test, which have its name.
async fn close_connections(node: &Node, name: &str) {
    let (node, name) = (node.clone(), name.to_owned());
    blocking(move || {
        let rows = node.ctl(&["list_connections", "pid", "client_properties"]).unwrap();
        let ours = rows.lines().filter(|row| row.contains(&format!("\"{name} consuming\"")));
        let pids: Vec<&str> = ours.filter_map(|row| row.split('\t').next()).collect();
        assert_eq!(pids.len(), 1, "{rows}");
        node.ctl(&["close_connection", pids[0], "test"]).unwrap();
    })
    .await;
}

#[tokio::test]
async fn consumer_is_back_when_its_queue_was_deleted() {
    let (broker, queue, record) = (node(), name("deleted"), Record::new());
    let declared = Queue::durable(&queue);
    let running = Consumers::connect(broker.url()).queue(declared).consume(recorder(&queue, &record));
    let running = running.start().await.unwrap();
    publish_numbers(&running, &queue, 0..10).await;
    record.wait_for(10).await;
    let (at, name) = (broker.clone(), queue.clone());
    blocking(move || at.ctl(&["delete_queue", &name]).unwrap()).await;
    while running.figures()[0].sessions < 2 {
        tokio::task::yield_now().await;
    }
    // The declarations were repeated, so there is a queue to publish to.
    publish_numbers(&running, &queue, 10..20).await;
    record.wait_for(20).await;
    assert_eq!(prefetches(&broker, &queue).await, ["40"]);
    compare(&record, 20, &running);
    running.stop(LIMIT).await;
}

#[tokio::test]
async fn closed_channel_under_load_loses_no_message() {
    const COUNT: u64 = 2_000;
    let (broker, queue, record) = (node(), name("closed"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    let running = Consumers::connect(broker.url()).name(&queue).consume(recorder(&queue, &record));
    let running = running.start().await.unwrap();
    record.wait_for(100).await;
    close_connections(&broker, &queue).await;
    record.wait_for(COUNT as usize).await;
    compare(&record, COUNT, &running);
    running.stop(LIMIT).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
}

/// The usual error that closes a channel: the broker's limit on the time until an answer.
#[tokio::test]
async fn channel_closed_by_a_broker_error_loses_no_message() {
    const COUNT: u64 = 500;
    const SLOW: u64 = 250;
    let (broker, queue, record) = (own_broker().await, name("overdue"), Record::new());
    let eval = |what: &'static str| {
        let server = Arc::clone(&broker);
        blocking(move || server.ctl(&["eval", what]).unwrap())
    };
    eval("application:set_env(rabbit, consumer_timeout, 1).").await;
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (note, opened, begun) = (record.clone(), Arc::clone(&gate), Arc::clone(&started));
    let on = move |number: u64| {
        let (note, opened, begun) = (note.clone(), Arc::clone(&opened), Arc::clone(&begun));
        async move {
            if number == SLOW {
                begun.notify_one();
                opened.acquire().await.unwrap().forget();
            }
            note.note(number);
        }
    };
    let consumer = Consumer::new(&queue, on).workers(8).prefetch(40);
    let running = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let running = running.start().await.unwrap();
    started.notified().await;
    // A channel has the limit of the time when it was opened; only the first channel must be closed.
    eval("application:set_env(rabbit, consumer_timeout, 1800000).").await;
    while running.figures()[0].sessions < 2 {
        // Makes the broker check how long deliveries are open; it does so on its own once a minute.
        eval("[Channel ! tick || Channel <- rabbit_channel:list()].").await;
    }
    // The message is delivered again on the next channel while its first handler still runs.
    started.notified().await;
    gate.add_permits(2);
    record.wait(|counts| counts.len() == COUNT as usize && counts.get(&SLOW) == Some(&2)).await;
    assert_eq!(prefetches(broker.node(), &queue).await, ["40"]);
    wait_for_messages(broker.node(), &queue, (0, 0)).await;
    compare(&record, COUNT, &running);
    assert_eq!(running.figures()[0].sessions, 2, "{running:?}");
    running.stop(LIMIT).await;
    blocking(move || drop(broker)).await;
}

#[tokio::test]
async fn stop_without_a_broker_ends_in_time() {
    let (broker, queue) = (own_broker().await, name("gone"));
    let consumer = Consumer::raw(&queue, |_: Delivery| async {});
    let running = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let running = running.start().await.unwrap();
    let server = Arc::clone(&broker);
    blocking(move || server.kill().unwrap()).await;
    while running.figures()[0].state != State::Reconnecting {
        tokio::task::yield_now().await;
    }
    assert!(!running.is_consuming());
    let stopped = tokio::time::timeout(LIMIT, running.stop(Duration::from_secs(1))).await;
    assert!(stopped.is_ok());
    blocking(move || drop(broker)).await;
}

#[tokio::test]
async fn publisher_reports_a_block_and_continues_after_it() {
    let (broker, queue) = (own_broker().await, name("alarm"));
    let running = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let number = |number: u64| Message::json(&number).unwrap();
    let patient = running.publisher(PATIENT);
    patient.publish("", &queue, &number(0)).await.unwrap();
    // Long enough for a busy broker to report that it blocks; the first message below waits this long.
    let options = PublisherOptions { attempts: 1, confirm_within: Duration::from_secs(5) };
    let publisher = running.publisher(options);
    let alarm = |watermark: &'static str| {
        let server = Arc::clone(&broker);
        blocking(move || server.ctl(&["set_vm_memory_high_watermark", watermark]).unwrap())
    };
    alarm("0.0000001").await;
    let refused = |error: &Error| matches!(error, Error::Blocked { .. });
    let error = publisher.publish("", &queue, &number(1)).await.unwrap_err();
    assert!(refused(&error), "{error}");
    let error = publisher.publish("", &queue, &number(2)).await.unwrap_err();
    assert_eq!(error, Error::Blocked { sent: "was not sent" });
    alarm("0.6").await;
    let sent = tokio::time::timeout(LIMIT, async {
        while let Err(error) = patient.publish("", &queue, &number(3)).await {
            assert!(refused(&error), "{error}");
            tokio::task::yield_now().await;
        }
    });
    assert!(sent.await.is_ok());
    // Messages that were sent before the broker reported the block are in the queue too. A message with the
    // error "was not sent" is not.
    wait_for_messages(broker.node(), &queue, (3, 0)).await;
    assert_eq!(drained(&broker.url(), &queue, 3).await, [0, 1, 3]);
    running.stop(LIMIT).await;
    blocking(move || drop(broker)).await;
}
