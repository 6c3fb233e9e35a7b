//! Recurring tasks: each tick fires once, with any number of workers and after any absence.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use windlass::{
    Client, Error, Name, NewTask, Outcome, Payload, TaskRecord, TaskState, WorkerConfig,
    client::Schedule,
    schedule::{Missed, ScheduleRow, Spec},
    store::{Filter, Rules, Schedules as _, Store as _},
    time::{ManualClock, Timestamp},
};
use windlass_conformance::MemoryStore;

use crate::{
    rig::{Running, act, enqueue, memory, quick, start, until, until_state},
    staged::{Act, On, Staged},
};

const MINUTE: Duration = Duration::from_mins(1);

/// A store whose clock stands at 09:30:00 until the test moves it.
struct Place {
    clock: Arc<ManualClock>,
    store: Arc<Staged>,
}

impl Place {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(at("09:30:00")));
        let memory = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        Self { clock, store: Arc::new(Staged::new(memory)) }
    }

    fn worker(&self) -> Running {
        // With a clock that stands still and jumps, no worker could renew in time.
        let config = WorkerConfig { lease_ttl: Duration::from_hours(48), ..quick() };
        start(self.store.clone(), act(async |_| Outcome::Done(None)), config)
    }

    async fn set(&self, name: &str, spec: Spec) -> Schedule {
        Client::new(self.store.clone()).schedules().set(name, spec).await.unwrap()
    }

    async fn put(&self, name: &str, spec: &str, next_at: Timestamp) {
        let row = ScheduleRow {
            name: Name::new("schedule", name).unwrap(),
            spec: spec.to_owned(),
            paused: false,
            next_at: Some(next_at),
            last_at: None,
            last_task: None,
        };
        self.store.put(&row).await.unwrap();
    }

    async fn row(&self, name: &str) -> ScheduleRow {
        self.store.list().await.unwrap().into_iter().find(|row| row.name.as_str() == name).unwrap()
    }

    async fn tasks(&self) -> Vec<TaskRecord> {
        self.store.tasks(&Filter::default(), None, 1_000).await.unwrap().tasks
    }

    async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.tasks().await.into_iter().filter_map(|task| task.key).collect();
        keys.sort();
        keys
    }

    fn looks(&self) -> u64 {
        self.store.calls(On::DueSchedules)
    }

    /// Lets these workers check, and waits until each has.
    async fn look(&self, workers: &[Running]) {
        let before = self.looks();
        for worker in workers {
            worker.handle.wake_schedules();
        }
        let each = workers.len() as u64;
        until("every worker has looked", async || self.looks() >= before + each).await;
    }
}

fn at(time: &str) -> Timestamp {
    format!("2027-01-31T{time}Z").parse().unwrap()
}

fn spec(cron: &str) -> Spec {
    Spec::raw(cron, NewTask::new("t", Payload::json(&0).unwrap()).unwrap()).unwrap()
}

fn key(schedule: &str, tick: &str) -> String {
    format!("schedule:{schedule}:{}", at(tick).as_ms())
}

#[tokio::test]
async fn each_tick_fires_once_with_any_number_of_workers() {
    let place = Place::new();
    let workers = [place.worker(), place.worker(), place.worker()];
    until("all have started", async || place.looks() >= 3).await;
    place.set("s", spec("* * * * *")).await;
    for tick in 1..=20 {
        place.clock.advance(MINUTE);
        place.look(&workers).await;
        until("it is fired", async || place.tasks().await.len() == tick).await;
    }
    let ids: Vec<_> = place.tasks().await.iter().map(|task| task.id).collect();
    until_state(&*place.store, &ids, TaskState::Done).await;
    assert_eq!(place.keys().await.iter().collect::<BTreeSet<_>>().len(), 20);
    let mut fired = 0;
    for worker in workers {
        let handle = worker.handle.clone();
        worker.stop().await;
        fired += handle.status().ticks_fired;
    }
    assert_eq!((fired, place.tasks().await.len()), (20, 20));
}

#[tokio::test]
async fn nothing_is_fired_before_its_tick() {
    let place = Place::new();
    place.set("s", spec("* * * * *")).await;
    let worker = [place.worker()];
    place.look(&worker).await;
    place.clock.advance(Duration::from_millis(59_999));
    place.look(&worker).await;
    assert_eq!(place.tasks().await, []);
    place.clock.advance(Duration::from_millis(1));
    place.look(&worker).await;
    until("it is fired", async || place.keys().await == [key("s", "09:31:00")]).await;
}

#[tokio::test]
async fn a_worker_fires_its_ticks_and_none_early() {
    let store = memory();
    let client = Client::new(store.clone());
    client.schedules().set("s", spec("* * * * * *")).await.unwrap();
    let worker = start(store.clone(), act(async |_| Outcome::Done(None)), quick());
    until("two ticks have come", async || worker.status().ticks_fired >= 2).await;
    worker.stop().await;
    for task in store.tasks(&Filter::default(), None, 1_000).await.unwrap().tasks {
        let key = task.key.unwrap();
        let tick: i64 = key.rsplit(':').next().unwrap().parse().unwrap();
        assert!(task.id.enqueued_at().as_ms() >= tick, "{key} was early");
    }
}

#[tokio::test]
async fn ticks_missed_without_a_worker_are_made_up_once() {
    let place = Place::new();
    place.set("once", spec("*/10 * * * *")).await;
    place.set("skip", spec("*/10 * * * *").missed(Missed::Skip)).await;
    let worker = place.worker();
    until("it has looked", async || place.looks() >= 1).await;
    worker.stop().await;
    place.clock.advance(Duration::from_mins(45));
    let workers = [place.worker(), place.worker()];
    until("both have moved on", async || {
        let (once, skip) = (place.row("once").await, place.row("skip").await);
        [once.next_at, skip.next_at] == [Some(at("10:20:00")); 2]
    })
    .await;
    place.look(&workers).await;
    assert_eq!(place.keys().await, [key("once", "09:40:00")]);
    assert_eq!(place.row("once").await.last_at, Some(at("09:40:00")));
    assert_eq!(place.row("skip").await.last_at, None);
}

#[tokio::test]
async fn a_fire_whose_answer_is_lost_fires_once() {
    let place = Place::new();
    place.set("s", spec("* * * * *")).await;
    place.store.next(On::Fire, [Act::LoseAnswer, Act::Fail(Error::Unavailable("down".into()))]);
    let workers = [place.worker(), place.worker()];
    for tick in 1..=3 {
        place.clock.advance(MINUTE);
        until("it is fired", async || {
            place.look(&workers).await;
            place.tasks().await.len() >= tick
        })
        .await;
    }
    assert_eq!(place.keys().await, [key("s", "09:31:00"), key("s", "09:32:00"), key("s", "09:33:00")]);
}

#[tokio::test]
async fn a_look_that_fails_is_tried_again() {
    let place = Place::new();
    place.put("s", &spec("* * * * *").to_stored().unwrap(), at("09:30:00")).await;
    place.store.next(On::DueSchedules, [Act::Fail(Error::Unavailable("down".into()))]);
    let _worker = place.worker();
    until("it is fired", async || place.keys().await == [key("s", "09:30:00")]).await;
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_blocks_no_other() {
    let place = Place::new();
    // More than one check takes, and all of them due for longer than the good one.
    for number in 0..150 {
        place.put(&format!("broken-{number}"), "every hour", at("09:00:00")).await;
        place.put(&format!("newer-{number}"), r#"{"v":3}"#, at("09:00:00")).await;
    }
    place.put("good", &spec("* * * * *").to_stored().unwrap(), at("09:30:00")).await;
    let worker = place.worker();
    until("the good one is fired", async || place.keys().await == [key("good", "09:30:00")]).await;
    assert_eq!(place.row("broken-0").await.next_at, None, "its next tick cannot be computed");
    assert_eq!(place.row("newer-0").await.next_at, Some(at("09:00:00")), "a newer worker fires it");
    assert_eq!(worker.status().ticks_left_out, 150);
    worker.stop().await;
}

#[tokio::test]
async fn a_tick_with_a_refused_task_is_skipped() {
    let place = Place::new();
    let refused = r#"{"v":1,"cron":"* * * * *","tz":"UTC","kind":"t","max_attempts":0}"#;
    place.put("refused", refused, at("09:30:00")).await;
    let worker = place.worker();
    until("it moved on", async || place.row("refused").await.next_at == Some(at("09:31:00"))).await;
    assert_eq!(place.tasks().await, []);
    worker.stop().await;
}

#[tokio::test]
async fn a_fired_tick_does_not_fire_again_after_a_stale_write() {
    let place = Place::new();
    let stale = place.set("s", spec("* * * * *")).await;
    place.clock.advance(MINUTE);
    let worker = [place.worker()];
    until("it is fired", async || place.tasks().await.len() == 1).await;
    // A caller read it before the tick, and writes it back with another queue, where the key is not taken.
    let mut moved = spec("* * * * *");
    moved.task.queue = Name::new("queue", "other").unwrap();
    place.put("s", &moved.to_stored().unwrap(), stale.next_at.unwrap()).await;
    place.look(&worker).await;
    until("it moved on", async || place.row("s").await.next_at == Some(at("09:32:00"))).await;
    assert_eq!(place.keys().await, [key("s", "09:31:00")]);
}

#[tokio::test]
async fn a_worker_looks_no_more_often_because_it_is_busy() {
    let place = Place::new();
    place.set("tomorrow", spec("0 0 * * *")).await;
    let before = place.looks();
    let worker = place.worker();
    let ids = enqueue(&*place.store, 300).await;
    until_state(&*place.store, &ids, TaskState::Done).await;
    assert!(place.looks() <= before + 1);
    worker.stop().await;
}
