//! What the broker shows: connections with their names and heartbeats, and which consumers may consume from a
//! queue.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, mpsc};
use windlass_amqp::{Consumer, Consumers, Delivery, Error, Message, PublisherOptions, Queue, Running};
use windlass_scratch::Node;

use crate::rig::{LIMIT, blocking, name, node, wait_for_messages};

/// Messages in the queue of a consumer that has it alone.
const COUNT: u64 = 40;

/// Heartbeat and name of every connection whose name contains `named`; `rabbitmqctl` prints properties as
/// Erlang terms.
async fn connections(broker: &Node, named: &str) -> Vec<(String, String)> {
    let (broker, named) = (broker.clone(), named.to_owned());
    blocking(move || {
        let rows = broker.ctl(&["list_connections", "timeout", "client_properties"]).unwrap();
        let mut found: Vec<_> = rows
            .lines()
            .filter_map(|row| {
                let (timeout, properties) = row.split_once('\t')?;
                let (_, rest) = properties.split_once("\"connection_name\",")?;
                let given = rest.split('"').nth(1)?;
                given.contains(&named).then(|| (given.to_owned(), timeout.to_owned()))
            })
            .collect();
        found.sort();
        found
    })
    .await
}

/// Tags of the consumers of a queue, and whether each is active.
async fn consumers(broker: &Node, queue: &str) -> Vec<(String, bool)> {
    let (broker, queue) = (broker.clone(), queue.to_owned());
    blocking(move || {
        let rows = broker.ctl(&["list_consumers", "queue_name", "consumer_tag", "active"]).unwrap();
        let mut found: Vec<_> = rows
            .lines()
            .filter_map(|row| {
                let (tag, is_active) = row.strip_prefix(&queue)?.strip_prefix('\t')?.split_once('\t')?;
                Some((tag.to_owned(), is_active == "true"))
            })
            .collect();
        found.sort();
        found
    })
    .await
}

#[tokio::test]
async fn consuming_and_publishing_have_separate_connections() {
    let (broker, queue) = (node(), name("connections"));
    let consumer = Consumer::raw(&queue, |_: Delivery| async {});
    let running = Consumers::connect(broker.url())
        .name(&queue)
        .queue(Queue::durable(&queue))
        .consume(consumer)
        .start()
        .await
        .unwrap();
    let consuming = (format!("{queue} consuming"), "10".to_owned());
    assert_eq!(
        connections(&broker, &queue).await,
        std::slice::from_ref(&consuming),
        "nothing was published yet"
    );
    let publisher = running.publisher(PublisherOptions::default());
    publisher.publish("", &queue, &Message::bytes("x")).await.unwrap();
    let publishing = (format!("{queue} publishing"), "10".to_owned());
    assert_eq!(connections(&broker, &queue).await, [consuming, publishing]);
    running.stop(LIMIT).await;
    assert_eq!(connections(&broker, &queue).await, []);
}

#[tokio::test]
async fn heartbeat_of_the_address_is_used() {
    let (broker, queue) = (node(), name("heartbeat"));
    let url = format!("{}?heartbeat=7", broker.url());
    let consumer = Consumer::raw(&queue, |_: Delivery| async {});
    let running = Consumers::connect(url).name(&queue).queue(Queue::durable(&queue)).consume(consumer);
    let running = running.start().await.unwrap();
    assert_eq!(connections(&broker, &queue).await, [(format!("{queue} consuming"), "7".to_owned())]);
    running.stop(LIMIT).await;
}

#[tokio::test]
async fn exclusive_consumer_keeps_others_out_until_it_stops() {
    let (broker, queue) = (node(), name("exclusive"));
    let consumer = |tag: &str| Consumer::raw(&queue, |_: Delivery| async {}).tag(tag);
    let set = |consumer| Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let first = set(consumer("first").exclusive()).start().await.unwrap();
    for other in [consumer("second"), consumer("second").exclusive()] {
        let error = set(other).start().await.unwrap_err();
        assert!(matches!(&error, Error::Refused { reason, .. } if reason.contains("exclusive")), "{error}");
    }
    assert_eq!(consumers(&broker, &queue).await, [("first".to_owned(), true)]);
    first.stop(LIMIT).await;
    let second = set(consumer("second")).start().await.unwrap();
    assert_eq!(consumers(&broker, &queue).await, [("second".to_owned(), true)]);
    second.stop(LIMIT).await;
}

/// A consumer that has its queue alone, with one handler at a time; it reports the handled numbers. At number
/// `at` it waits for the gate.
fn alone(queue: &str, tag: &str, gate: &Arc<Semaphore>, at: u64) -> (Consumer, mpsc::UnboundedReceiver<u64>) {
    let (handled, numbers) = mpsc::unbounded_channel();
    let gate = Arc::clone(gate);
    let on = move |number: u64| {
        let (handled, gate) = (handled.clone(), Arc::clone(&gate));
        async move {
            if number == at {
                let _pass = gate.acquire().await;
            }
            let _ = handled.send(number);
        }
    };
    (Consumer::new(queue, on).workers(1).prefetch(5).tag(tag).single_active(), numbers)
}

/// Two processes on a queue of forty: the first stops at number ten, the second waits for its turn.
async fn two_alone(
    broker: &Node,
    queue: &str,
    gate: &Arc<Semaphore>,
) -> [(Running, mpsc::UnboundedReceiver<u64>); 2] {
    let set = |consumer| Consumers::connect(broker.url()).queue(Queue::durable(queue)).consume(consumer);
    let (a, first) = alone(queue, "a", gate, 10);
    let active = set(a).start().await.unwrap();
    let (b, second) = alone(queue, "b", gate, COUNT);
    let waiting = set(b).start().await.unwrap();
    assert_eq!(consumers(broker, queue).await, [("a".to_owned(), true), ("b".to_owned(), false)]);
    let publisher = waiting.publisher(PublisherOptions::default());
    for number in 0..COUNT {
        publisher.publish("", queue, &Message::json(&number).unwrap()).await.unwrap();
    }
    // Ten are acknowledged, one runs, four have arrived. The waiting consumer gets nothing, although most of
    // the queue is ready.
    wait_for_messages(broker, queue, (COUNT - 15, 5)).await;
    assert!(second.is_empty());
    [(active, first), (waiting, second)]
}

/// Exactly these numbers were handled, in this order, and no handler runs any more.
async fn handled(mut numbers: mpsc::UnboundedReceiver<u64>, wanted: std::ops::Range<u64>) {
    for number in wanted {
        assert_eq!(numbers.recv().await, Some(number));
    }
    assert_eq!(numbers.recv().await, None);
}

#[tokio::test]
async fn stopping_single_active_consumer_keeps_its_turn_to_the_end() {
    let (broker, queue, gate) = (node(), name("single-active"), Arc::new(Semaphore::new(0)));
    let [(active, first), (waiting, second)] = two_alone(&broker, &queue, &gate).await;
    let stopping = tokio::spawn(active.stop(LIMIT));
    assert_eq!(consumers(&broker, &queue).await, [("a".to_owned(), true), ("b".to_owned(), false)]);
    assert!(second.is_empty(), "the next one must not begin while number ten is being handled");
    gate.add_permits(1);
    assert_eq!(stopping.await.unwrap().drained, 1);
    handled(first, 0..11).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
    assert_eq!(consumers(&broker, &queue).await, [("b".to_owned(), true)]);
    waiting.stop(LIMIT).await;
    handled(second, 11..COUNT).await;
}

#[tokio::test]
async fn next_single_active_consumer_gets_the_interrupted_delivery() {
    let (broker, queue, gate) = (node(), name("single-active-cut"), Arc::new(Semaphore::new(0)));
    let [(active, first), (waiting, second)] = two_alone(&broker, &queue, &gate).await;
    assert_eq!(active.stop(Duration::from_millis(1)).await.aborted, 1);
    handled(first, 0..10).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
    waiting.stop(LIMIT).await;
    handled(second, 10..COUNT).await;
}
