//! Schedules through the client, on a store in memory, without a worker.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{sync::Arc, time::Duration};

use windlass::{
    Client, Error, Name, NewTask, Payload, Task,
    schedule::{Fire, Missed, ScheduleRow, Spec, Unreadable},
    store::{Filter, Rules, Store as _},
    task::Start,
    time::{Clock as _, ManualClock, Timestamp},
};
use windlass_conformance::MemoryStore;

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(queue = "mail", max_attempts = 5, timeout = "30s")]
struct Report {
    to: String,
}

fn report() -> Report {
    Report { to: "ada@example.com".into() }
}

fn at(time: &str) -> Timestamp {
    format!("2027-01-31T{time}Z").parse().unwrap()
}

struct Place {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    client: Client,
}

fn place() -> Place {
    let clock = Arc::new(ManualClock::new(at("09:30:00")));
    let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
    Place { clock, client: Client::new(store.clone()), store }
}

#[tokio::test]
async fn a_new_schedule_has_its_tasks_settings_and_its_next_tick() {
    let Place { client, .. } = place();
    let spec = Spec::new("0 7 * * *", &report()).unwrap().tz("Europe/Berlin").unwrap().missed(Missed::Skip);
    let schedule = client.schedules().set("morning", spec.clone()).await.unwrap();
    assert_eq!(schedule, client.schedules().get("morning").await.unwrap());
    assert_eq!(schedule.spec, Ok(spec));
    let task = schedule.spec.as_ref().unwrap().task.clone();
    assert_eq!((task.queue.as_str(), task.max_attempts), ("mail", Some(5)));
    let days: Vec<_> = schedule.upcoming(3).iter().map(ToString::to_string).collect();
    assert_eq!(days, ["2027-02-01T06:00:00.000Z", "2027-02-02T06:00:00.000Z", "2027-02-03T06:00:00.000Z"]);
    let names: Vec<_> = client.schedules().list().await.unwrap().into_iter().map(|s| s.name).collect();
    assert_eq!(names, [Name::new("schedule", "morning").unwrap()]);
}

#[tokio::test]
async fn set_again_keeps_a_late_tick_unless_the_times_change() {
    let Place { client, clock, .. } = place();
    let hourly = || Spec::new("0 * * * *", &report()).unwrap();
    client.schedules().set("s", hourly()).await.unwrap();
    clock.advance(Duration::from_mins(45));
    let same = client.schedules().set("s", hourly().missed(Missed::Skip)).await.unwrap();
    assert_eq!(same.next_at, Some(at("10:00:00")), "a deployment does not swallow a tick");
    let other = client.schedules().set("s", Spec::new("30 * * * *", &report()).unwrap()).await.unwrap();
    assert_eq!(other.next_at, Some(at("10:30:00")));
    let zone = Spec::new("30 * * * *", &report()).unwrap().tz("Asia/Kolkata").unwrap();
    assert_eq!(client.schedules().set("s", zone).await.unwrap().next_at, Some(at("11:00:00")));
}

#[tokio::test]
async fn ticks_of_a_paused_schedule_are_not_made_up() {
    let Place { client, clock, store } = place();
    let schedules = client.schedules();
    schedules.set("s", Spec::new("0 * * * *", &report()).unwrap()).await.unwrap();
    let paused = schedules.pause("s").await.unwrap();
    assert!(paused.paused && paused.upcoming(3).is_empty());
    clock.advance(Duration::from_hours(5));
    assert_eq!(store.schedules().due(10).await.unwrap().due, []);
    let again = schedules.set("s", Spec::new("0 * * * *", &report()).unwrap()).await.unwrap();
    assert!(again.paused, "another text does not resume it");
    let resumed = schedules.resume("s").await.unwrap();
    assert_eq!((resumed.paused, resumed.next_at), (false, Some(at("15:00:00"))));
    clock.advance(Duration::from_hours(1));
    let same = schedules.resume("s").await.unwrap();
    assert_eq!(same.next_at, Some(at("15:00:00")), "one that is not paused keeps its tick");
}

#[tokio::test]
async fn run_enqueues_now_and_leaves_the_ticks_alone() {
    let Place { client, store, .. } = place();
    let schedules = client.schedules();
    let set = schedules.set("s", Spec::new("0 * * * *", &report()).unwrap()).await.unwrap();
    let (first, second) = (schedules.run("s").await.unwrap(), schedules.run("s").await.unwrap());
    assert_ne!(first.id, second.id);
    assert_eq!(schedules.get("s").await.unwrap(), set);
    schedules.pause("s").await.unwrap();
    schedules.run("s").await.unwrap();
    let tasks = store.tasks(&Filter::default(), None, 10).await.unwrap().tasks;
    assert!(tasks.len() == 3 && tasks.iter().all(|task| task.lane.queue.as_str() == "mail"));
}

#[tokio::test]
async fn a_schedule_shows_its_last_tick_and_task() {
    let Place { client, store, clock } = place();
    let set = client.schedules().set("s", Spec::new("0 * * * *", &report()).unwrap()).await.unwrap();
    let (tick, task) = (set.next_at.unwrap(), report().new_task().unwrap());
    let spec = store.schedules().find(&set.name).await.unwrap().unwrap().spec;
    let fire = Fire { name: set.name.clone(), spec, tick, task: Some(task), next_at: Some(at("11:00:00")) };
    clock.advance(tick.since(clock.wall()));
    let fired = store.schedules().fire(fire).await.unwrap().unwrap();
    let after = client.schedules().get("s").await.unwrap();
    assert_eq!((after.last_at, after.last_task), (Some(tick), Some(fired.id)));
}

#[tokio::test]
async fn mistakes_are_refused_before_anything_is_stored() {
    let Place { client, store, .. } = place();
    let schedules = client.schedules();
    let error = Spec::new("61 * * * *", &report()).unwrap_err();
    assert_eq!(error.to_string(), r#"cron "61 * * * *": minute is "61"; allowed are 0 to 59"#);
    assert!(Spec::new("@daily", &report()).unwrap().tz("Mars/Olympus").is_err());
    let spec = || Spec::new("@daily", &report()).unwrap();
    assert!(matches!(schedules.set(" s", spec()).await, Err(Error::Invalid(_))));
    let late = NewTask { start: Start::In(Duration::from_secs(1)), ..report().new_task().unwrap() };
    assert!(schedules.set("s", Spec::raw("@daily", late).unwrap()).await.is_err());
    let large = NewTask::new("k", Payload::bytes(vec![0; 2 << 20])).unwrap();
    assert!(schedules.set("s", Spec::raw("@daily", large).unwrap()).await.is_err());
    assert_eq!(store.schedules().list().await.unwrap(), []);
}

#[tokio::test]
async fn a_missing_schedule_is_not_found() {
    let schedules = place().client.schedules();
    let missing = Error::NotFound(r#"schedule "s""#.into());
    assert_eq!(schedules.get("s").await, Err(missing.clone()));
    assert_eq!(schedules.pause("s").await, Err(missing.clone()));
    assert_eq!(schedules.resume("s").await, Err(missing.clone()));
    assert_eq!(schedules.run("s").await, Err(missing.clone()));
    assert_eq!(schedules.remove("s").await, Err(missing));
    schedules.set("s", Spec::new("@daily", &report()).unwrap()).await.unwrap();
    assert_eq!(schedules.remove("s").await, Ok(()));
    assert_eq!(schedules.list().await, Ok(vec![]));
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_is_shown_and_can_be_replaced() {
    let Place { client, store, .. } = place();
    let name = Name::new("schedule", "s").unwrap();
    let row = ScheduleRow {
        name,
        spec: r#"{"v":9}"#.into(),
        paused: true,
        next_at: Some(at("09:00:00")),
        last_at: None,
        last_task: None,
    };
    store.schedules().put(&row).await.unwrap();
    let schedules = client.schedules();
    assert_eq!(schedules.get("s").await.unwrap().spec, Err(Unreadable::Newer(9)));
    assert!(matches!(schedules.resume("s").await, Err(Error::Conflict(_))));
    assert!(matches!(schedules.run("s").await, Err(Error::Conflict(_))));
    let set = schedules.set("s", Spec::new("0 * * * *", &report()).unwrap()).await.unwrap();
    assert_eq!(set.next_at, Some(at("10:00:00")));
}
