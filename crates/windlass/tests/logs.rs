//! Log lines: one per important event, with the fields that find the task, never with the payload.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use windlass::{
    Client, Context, Outcome, RetryPolicy, State, Task, TaskId, Worker, store::SharedStore, testing,
};

/// The fields of a line; its text is the field `message`, its level the field `level`.
type Line = BTreeMap<String, String>;

/// Keeps every line of the whole process: workers have their own threads.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Line>>>);

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("windlass")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::from([("level".to_owned(), event.metadata().level().to_string())]);
        event.record(&mut Fields(&mut line));
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Fields<'a>(&'a mut Line);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
enum Way {
    Fine,
    Retry,
    Dead,
    Panic,
    TimeOut,
    Cancel,
    LoseLease,
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Go {
    way: Way,
    secret: String,
}

async fn go(Go { way, secret }: Go, ctx: Context, State(store): State<SharedStore>) -> Outcome {
    if ctx.lease() > 1 {
        return Outcome::Done(None);
    }
    match way {
        Way::Fine => Outcome::Done(None),
        // The handler quotes its payload. That is kept with the task, and stays out of the log.
        Way::Retry => Outcome::retry(secret),
        Way::Dead => Outcome::dead(secret),
        Way::Panic => panic!("{secret}"),
        Way::TimeOut => std::future::pending().await,
        Way::Cancel => Outcome::cancel(secret),
        Way::LoseLease => {
            // The registration ends while the worker runs: its tasks are free for others.
            store.retire(ctx.worker()).await.unwrap();
            Outcome::Done(None)
        }
    }
}

#[tokio::test]
async fn each_end_but_success_has_one_log_line_with_its_task() {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(kept.clone()).unwrap();
    let store = testing::store().await.unwrap();
    let client = Client::new(store.clone());
    let soon =
        RetryPolicy { base: Duration::from_millis(1), max: Duration::from_millis(1), jitter_percent: 0 };
    let enqueue = async |way: Way| {
        let task = client.enqueue(Go { way, secret: "hush".repeat(3) }).retry(soon);
        let task = if way == Way::TimeOut { task.timeout(Duration::from_millis(20)) } else { task };
        task.job("site-7").workflow(format!("order-{way:?}")).await.unwrap().id
    };
    let ways = [
        (Way::Fine, vec![]),
        (Way::Retry, vec![("INFO", "the attempt failed; the task is tried again")]),
        (Way::Dead, vec![("WARN", "the task is dead: `windlass tasks show ID` says why")]),
        (
            Way::Panic,
            vec![("WARN", "handler panicked"), ("INFO", "the attempt failed; the task is tried again")],
        ),
        (
            Way::TimeOut,
            vec![
                ("WARN", "the attempt ran into its deadline"),
                ("INFO", "the attempt failed; the task is tried again"),
            ],
        ),
        (Way::Cancel, vec![("INFO", "the task is cancelled")]),
        (Way::LoseLease, vec![("WARN", "lease lost: the end of this attempt was refused")]),
    ];
    for (way, expected) in ways {
        let id = enqueue(way).await;
        let worker = Worker::builder(store.clone()).state(store.clone()).handle(go).build().unwrap();
        let handle = worker.handle();
        let running = tokio::spawn(worker.run(std::future::pending::<()>()));
        client.wait(id, Duration::from_mins(1)).await.unwrap();
        // The worker logs the end before it stops.
        handle.drain();
        running.await.unwrap().unwrap();
        let lines = about(&kept, id);
        let told: Vec<_> =
            lines.iter().map(|line| (line["level"].as_str(), line["message"].as_str())).collect();
        assert_eq!(told, expected, "{way:?}");
        for line in lines {
            assert_eq!((line["kind"].as_str(), line["queue"].as_str()), ("go", "default"), "{line:?}");
            assert_eq!((line["attempt"].as_str(), line["job"].as_str()), ("1", "site-7"), "{line:?}");
            assert_eq!(line["workflow"], format!("order-{way:?}"), "{line:?}");
            assert!(line["worker"].starts_with('w'), "{line:?}");
        }
    }
    let all = format!("{:?}", kept.0.lock().unwrap());
    assert!(!all.contains("hush"), "{all}");
}

fn about(kept: &Kept, id: TaskId) -> Vec<Line> {
    let id = id.to_string();
    kept.0.lock().unwrap().iter().filter(|line| line.get("task") == Some(&id)).cloned().collect()
}
