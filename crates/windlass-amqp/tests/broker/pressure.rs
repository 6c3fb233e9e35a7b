//! Consumers under admission control: short memory, and large messages.

use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Semaphore;
use windlass::{
    Pool, Worker,
    admission::{AdmissionConfig, Controller},
    telemetry::{self, Exposition},
};
use windlass_amqp::{
    Consumer, ConsumerFigures, Consumers, Delivery, Message, PublisherOptions, Queue, Running,
};

use crate::rig::{LIMIT, Record, fill, name, node, wait_for_messages};

/// Memory of the control group below.
const MEMORY: u64 = 1_000_000;

/// A control group as a folder: the test writes the memory in use.
struct Group(tempfile::TempDir);

impl Group {
    fn using(percent: u64) -> Self {
        let group = Self(tempfile::tempdir().unwrap());
        group.put("proc/self/cgroup", "0::/\n");
        group.put("sys/fs/cgroup/memory.max", &MEMORY.to_string());
        group.uses(percent);
        group
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // In one step, because the sampler reads while the test writes.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn uses(&self, percent: u64) {
        self.put("sys/fs/cgroup/memory.current", &(MEMORY / 100 * percent).to_string());
    }

    fn controller(&self) -> Controller {
        Controller::reading_below(AdmissionConfig::default(), self.0.path()).unwrap()
    }
}

/// Reads the figures of the only consumer until they satisfy the condition.
async fn until(running: &Running, what: &str, is_wanted: impl Fn(&ConsumerFigures) -> bool) {
    let waited = tokio::time::timeout(LIMIT, async {
        while !is_wanted(&running.figures()[0]) {
            // More tasks may run only after a sample. Take one here instead of waiting for it.
            running.admission().sample();
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "in vain until {what}: {:?}", running.figures());
}

async fn nothing(_: u64) {}

#[tokio::test]
async fn short_memory_keeps_deliveries_at_the_broker() {
    const COUNT: u64 = 60;
    let (broker, queue, record) = (node(), name("short"), Record::new());
    fill(&broker.url(), Queue::durable(&queue), &queue, COUNT).await;
    let (group, gate) = (Group::using(96), Arc::new(Semaphore::new(0)));
    let controller = group.controller();
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (note, doors, now, peak) = (record.clone(), gate.clone(), open.clone(), most.clone());
    let on = move |number: u64| {
        let (note, doors, now, peak) = (note.clone(), doors.clone(), now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            doors.acquire().await.unwrap().forget();
            now.fetch_sub(1, Ordering::SeqCst);
            note.note(number);
        }
    };
    let consumer = Consumer::new(&queue, on).workers(20).prefetch(40).event_type("count");
    let running = Consumers::connect(broker.url()).consume(consumer).admission(controller.clone());
    let running = running.start().await.unwrap();
    // Other work of the process uses the same controller.
    let pool = Pool::builder().size(30).admission(controller.clone()).build().unwrap();
    let store = windlass::open("sqlite::memory:").await.unwrap();
    let worker = Worker::builder(store).slots(50).handle_kind("k", nothing);
    let worker = worker.admission(controller.clone()).build().unwrap();

    until(&running, "one runs", |seen| seen.running == 1 && seen.limit == 1).await;
    assert_eq!((pool.allowed(), worker.handle().status().allowed), (1, 1));
    wait_for_messages(&broker, &queue, (COUNT - 40, 40)).await;
    for ended in 1..=5 {
        gate.add_permits(1);
        until(&running, "the next one runs", |seen| seen.acked == ended && seen.running == 1).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 1, "one after another, with any number of workers");
    let options = telemetry::Options {
        consumers: Some(running.handle().source()),
        admission: Some(controller),
        ..telemetry::Options::default()
    };
    let page = Exposition::without_worker(None, options).text().await;
    let labels = format!("{{queue=\"{queue}\",event_type=\"count\"}}");
    for line in [
        format!("windlass_amqp_workers{labels} 20"),
        format!("windlass_amqp_workers_allowed{labels} 1"),
        format!("windlass_amqp_workers_busy{labels} 1"),
        format!("windlass_amqp_consuming{labels} 1"),
        format!("windlass_amqp_prefetch{labels} 40"),
        "windlass_memory_usage_ratio 0.96".to_owned(),
        "windlass_backpressure_factor{reason=\"latency\"} 1".to_owned(),
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
    }
    assert!(page.contains("windlass_backpressure_factor{reason=\"memory\"} 0."), "{page}");

    group.uses(10);
    until(&running, "all workers run", |seen| seen.limit == 20 && seen.running == 20).await;
    gate.add_permits(1_000);
    record.wait_for(COUNT as usize).await;
    running.stop(LIMIT).await;
    assert!(record.counts().values().all(|count| *count == 1));
    assert_eq!(most.load(Ordering::SeqCst), 20);
    wait_for_messages(&broker, &queue, (0, 0)).await;
}

/// The prefetch of a consumer as the broker reports it; `None` without a consumer.
async fn reported(queue: &str) -> Option<u16> {
    let queue = queue.to_owned();
    let look = move || {
        let rows = node().ctl(&["list_consumers", "queue_name", "prefetch_count"]).unwrap();
        rows.lines().find_map(|row| row.strip_prefix(&queue)?.trim().parse().ok())
    };
    tokio::task::spawn_blocking(look).await.unwrap()
}

async fn until_reported(queue: &str, prefetch: Option<u16>) {
    let waited = tokio::time::timeout(LIMIT, async { while reported(queue).await != prefetch {} });
    assert!(waited.await.is_ok(), "{:?}, not {prefetch:?}", reported(queue).await);
}

#[tokio::test]
async fn prefetch_is_lowered_for_large_messages_and_raised_again() {
    const LARGE: u32 = 150;
    const SMALL: u32 = 4_000;
    let (broker, queue) = (node(), name("large"));
    let publishing = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    let publish = async |number: u32, bytes: usize| {
        let mut body = vec![0; bytes];
        body[..4].copy_from_slice(&number.to_be_bytes());
        publisher.publish("", &queue, &Message::bytes(body)).await.unwrap();
    };
    for number in 0..LARGE {
        publish(number, 10_000).await;
    }
    let (group, gate, record) = (Group::using(10), Arc::new(Semaphore::new(0)), Record::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (doors, all, note) = (gate.clone(), seen.clone(), record.clone());
    let on = move |delivery: Delivery| {
        let (doors, all, note) = (doors.clone(), all.clone(), note.clone());
        async move {
            doors.acquire().await.unwrap().forget();
            let number = u32::from_be_bytes(delivery.body()[..4].try_into().unwrap());
            all.lock().unwrap().push(number);
            note.note(u64::from(number));
        }
    };
    let consumer = Consumer::raw(&queue, on).workers(1).prefetch(100);
    let running = Consumers::connect(broker.url()).consume(consumer).admission(group.controller());
    let running = running.start().await.unwrap();
    // Ten of them are a tenth of the memory, and a quarter of those is left free.
    until_reported(&queue, None).await;
    assert_eq!(running.figures()[0].deliveries, 100, "what had come is kept");
    gate.add_permits(96);
    until_reported(&queue, Some(8)).await;
    assert_eq!((running.figures()[0].prefetch_in_force, running.figures()[0].prefetch), (8, 100));
    gate.add_permits(100_000);
    for number in LARGE..LARGE + SMALL {
        publish(number, 10).await;
    }
    record.wait_for((LARGE + SMALL) as usize).await;
    until_reported(&queue, Some(100)).await;
    assert_eq!(*seen.lock().unwrap(), (0..LARGE + SMALL).collect::<Vec<_>>(), "in order, each once");
    running.stop(LIMIT).await;
    publishing.stop(LIMIT).await;
    wait_for_messages(&broker, &queue, (0, 0)).await;
}
