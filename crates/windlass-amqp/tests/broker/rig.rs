//! Tools of the tests: a queue for each test, messages in it, and a record of handled numbers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;
use windlass_amqp::{Consumer, Consumers, Message, PublisherOptions, Queue};
use windlass_scratch::{Node, shared_node};

/// A test fails after waiting this long.
pub const LIMIT: Duration = Duration::from_mins(3);

/// A publisher that does not send a message twice when the broker is slow: only a lost connection costs an
/// attempt.
pub const PATIENT: PublisherOptions = PublisherOptions { attempts: 20, confirm_within: LIMIT };

/// The shared broker.
pub fn node() -> Node {
    shared_node().unwrap()
}

/// A name that no other test of the run uses.
pub fn name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// Publishes numbered JSON messages, with the number as id, to a queue that it declares.
pub async fn fill(url: &str, queue: Queue, name: &str, count: u64) {
    let publishing = Consumers::connect(url).queue(queue).start().await.unwrap();
    let publisher = publishing.publisher(PATIENT);
    let numbers: Vec<u64> = (0..count).collect();
    // Many at once, because each waits for its confirm.
    for chunk in numbers.chunks(500) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in chunk {
            let (publisher, name, number) = (publisher.clone(), name.to_owned(), *number);
            tasks.spawn(async move {
                let message = Message::json(&number).unwrap().id(number.to_string());
                publisher.publish("", &name, &message).await.unwrap();
            });
        }
        while let Some(published) = tasks.join_next().await {
            published.unwrap();
        }
    }
    publishing.stop(LIMIT).await;
}

/// Runs a blocking function beside the thread of the test.
pub async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(act).await.unwrap()
}

/// A consumer that records numbers.
pub fn recorder(queue: &str, record: &Record) -> Consumer {
    let record = record.clone();
    let on = move |number: u64| {
        let record = record.clone();
        async move {
            // Lets other tasks run, so that a fault meets deliveries in every state.
            tokio::task::yield_now().await;
            record.note(number);
        }
    };
    Consumer::new(queue, on).workers(8).prefetch(40)
}

/// How often each number was handled.
#[derive(Clone)]
pub struct Record {
    counts: Arc<Mutex<BTreeMap<u64, u32>>>,
    total: Arc<watch::Sender<usize>>,
}

impl Record {
    pub fn new() -> Self {
        Self { counts: Arc::default(), total: Arc::new(watch::Sender::new(0)) }
    }

    pub fn note(&self, number: u64) {
        *self.counts.lock().unwrap().entry(number).or_default() += 1;
        self.total.send_modify(|total| *total += 1);
    }

    /// Waits until a condition on the counts holds.
    pub async fn wait(&self, is_there: impl Fn(&BTreeMap<u64, u32>) -> bool) {
        let mut total = self.total.subscribe();
        let waited = tokio::time::timeout(LIMIT, async {
            while !is_there(&self.counts.lock().unwrap()) {
                total.changed().await.unwrap();
            }
        });
        assert!(waited.await.is_ok(), "only {} different numbers came", self.counts().len());
    }

    /// Waits until this many different numbers were handled.
    pub async fn wait_for(&self, distinct: usize) {
        self.wait(|counts| counts.len() >= distinct).await;
    }

    pub fn counts(&self) -> BTreeMap<u64, u32> {
        self.counts.lock().unwrap().clone()
    }
}

/// Consumes the rest of a queue, which holds this many different numbers.
pub async fn drained(url: &str, queue: &str, distinct: usize) -> Vec<u64> {
    let record = Record::new();
    let running = Consumers::connect(url).consume(recorder(queue, &record)).start().await.unwrap();
    record.wait_for(distinct).await;
    running.stop(LIMIT).await;
    record.counts().into_keys().collect()
}

/// Messages of a queue as the broker counts them: ready and unacknowledged.
pub fn messages(node: &Node, queue: &str) -> Option<(u64, u64)> {
    let rows = node.ctl(&["list_queues", "name", "messages_ready", "messages_unacknowledged"]).unwrap();
    let row = rows.lines().find_map(|row| row.strip_prefix(queue)?.strip_prefix('\t').map(str::to_owned))?;
    let (ready, open) = row.split_once('\t').unwrap();
    Some((ready.trim().parse().unwrap(), open.trim().parse().unwrap()))
}

/// Waits until the broker reports these counts of a queue; its counts are late.
pub async fn wait_for_messages(node: &Node, queue: &str, wanted: (u64, u64)) {
    let (node, queue) = (node.clone(), queue.to_owned());
    let look = move || {
        let deadline = std::time::Instant::now() + LIMIT;
        while messages(&node, &queue) != Some(wanted) {
            assert!(
                std::time::Instant::now() < deadline,
                "{queue}: {:?}, not {wanted:?}",
                messages(&node, &queue)
            );
        }
    };
    // The consumers run on the thread of the test, so this must not block it.
    tokio::task::spawn_blocking(look).await.unwrap();
}
