//! Recurring tasks: each tick once, in the commit that enqueues its task.

use std::time::Duration;

use windlass_core::{Fire, NewTask, ScheduleRow, State, Timestamp, store::Filter};

use crate::{
    cases::rig::{MANY, Rig, keyed, list, name, step_of, task},
    harness::Harness,
};

const HOUR: Duration = Duration::from_hours(1);

fn spec(schedule: &str) -> String {
    format!("every hour: {schedule}")
}

fn row(schedule: &str, next_at: Option<Timestamp>) -> ScheduleRow {
    ScheduleRow {
        name: name(schedule),
        spec: spec(schedule),
        paused: false,
        next_at,
        last_at: None,
        last_task: None,
    }
}

fn fire(schedule: &str, tick: Timestamp, task: Option<NewTask>) -> Fire {
    Fire { name: name(schedule), spec: spec(schedule), tick, task, next_at: Some(tick.after(HOUR)) }
}

pub async fn schedules_are_kept_and_listed_by_name(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    assert_eq!(schedules.list().await, Ok(vec![]));
    let now = harness.now().await;
    let rows = [row("a", Some(now)), row("b", None), row("c", Some(now.after(HOUR)))];
    for row in rows.iter().rev() {
        schedules.put(row).await.unwrap();
    }
    assert_eq!(schedules.list().await.unwrap(), rows);
    assert_eq!(schedules.remove(&name("b")).await, Ok(true));
    assert_eq!(schedules.remove(&name("b")).await, Ok(false));
    assert_eq!(schedules.list().await.unwrap(), [rows[0].clone(), rows[2].clone()]);
}

pub async fn due_schedules_come_with_the_next_due_time(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let now = harness.now().await;
    let (early, late) = (now.before(Duration::from_mins(2)), now.before(Duration::from_mins(1)));
    let soon = now.after(Duration::from_mins(10));
    for row in
        [row("late", Some(late)), row("early", Some(early)), row("soon", Some(soon)), row("over", None)]
    {
        schedules.put(&row).await.unwrap();
    }
    schedules.put(&ScheduleRow { paused: true, ..row("paused", Some(early)) }).await.unwrap();
    let due = schedules.due(MANY).await.unwrap();
    let names: Vec<_> = due.due.iter().map(|row| row.name.to_string()).collect();
    assert_eq!((names, due.next_at), (vec!["early".to_owned(), "late".to_owned()], Some(soon)));
    assert!(due.now >= now);
    let first = schedules.due(1).await.unwrap();
    assert_eq!((first.due.len(), first.next_at), (1, Some(late)), "the others are due at once");
}

pub async fn a_tick_is_fired_once(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick))).await.unwrap();
    let fired = schedules.fire(fire("s", tick, Some(task("a")))).await.unwrap().expect("it was due");
    assert_eq!(rig.state(fired.id).await, State::Ready);
    let after = &schedules.list().await.unwrap()[0];
    assert_eq!((after.last_at, after.last_task), (Some(tick), Some(fired.id)));
    assert_eq!(after.next_at, Some(tick.after(HOUR)), "and the next tick is set");
    assert_eq!(schedules.fire(fire("s", tick, Some(task("a")))).await, Ok(None));
    assert_eq!(schedules.fire(fire("other", tick, Some(task("a")))).await, Ok(None));
    assert_eq!(rig.all().await.len(), 1);
    assert_eq!(schedules.due(MANY).await.unwrap().due, []);
}

pub async fn fires_at_once_have_one_winner(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let tick = harness.now().await;
    rig.store.schedules().put(&row("s", Some(tick))).await.unwrap();
    let mut callers = Vec::new();
    for _ in 0..8 {
        let store = harness.connect(&rig.store).await;
        callers.push(tokio::spawn(async move {
            store.schedules().fire(fire("s", tick, Some(task("a")))).await.unwrap()
        }));
    }
    let mut winners = 0;
    for caller in callers {
        winners += u32::from(caller.await.unwrap().is_some());
    }
    assert_eq!((winners, rig.all().await.len()), (1, 1));
}

pub async fn a_paused_schedule_does_not_fire(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    let paused = ScheduleRow { paused: true, ..row("s", Some(tick)) };
    schedules.put(&paused).await.unwrap();
    assert_eq!(schedules.fire(fire("s", tick, Some(task("a")))).await, Ok(None));
    assert_eq!((schedules.list().await.unwrap(), rig.all().await), (vec![paused], vec![]));
    schedules.put(&row("s", Some(tick))).await.unwrap();
    assert!(schedules.fire(fire("s", tick, Some(task("a")))).await.unwrap().is_some());
}

pub async fn a_replaced_schedule_keeps_its_last_tick(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick))).await.unwrap();
    let fired = schedules.fire(fire("s", tick, Some(task("a")))).await.unwrap().unwrap();
    let new = ScheduleRow { spec: "every minute".to_owned(), ..row("s", Some(tick.after(HOUR * 2))) };
    schedules.put(&new).await.unwrap();
    let kept = ScheduleRow { last_at: Some(tick), last_task: Some(fired.id), ..new };
    assert_eq!(schedules.list().await.unwrap(), [kept]);
}

pub async fn a_tick_that_has_not_come_is_not_fired(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await.after(HOUR);
    schedules.put(&row("s", Some(tick))).await.unwrap();
    for fire in [fire("s", tick, Some(task("a"))), fire("s", tick, None)] {
        assert_eq!(schedules.fire(fire).await, Ok(None));
    }
    assert_eq!((schedules.list().await.unwrap(), rig.all().await), (vec![row("s", Some(tick))], vec![]));
}

pub async fn a_schedule_that_changed_meanwhile_is_not_fired(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick))).await.unwrap();
    let decided = fire("s", tick, Some(task("a")));
    let changed = ScheduleRow { spec: "something else".to_owned(), ..row("s", Some(tick)) };
    schedules.put(&changed).await.unwrap();
    assert_eq!(schedules.fire(decided.clone()).await, Ok(None));
    assert_eq!((schedules.list().await.unwrap(), rig.all().await), (vec![changed.clone()], vec![]));
    assert_eq!(schedules.find(&name("s")).await, Ok(Some(changed.clone())));
    assert_eq!(schedules.find(&name("t")).await, Ok(None));
    assert!(schedules.fire(Fire { spec: changed.spec, ..decided }).await.unwrap().is_some());
}

pub async fn a_missed_tick_can_be_left_out(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick))).await.unwrap();
    assert_eq!(schedules.fire(fire("s", tick, None)).await, Ok(None));
    assert_eq!(schedules.list().await.unwrap()[0].next_at, Some(tick.after(HOUR)));
    assert_eq!(rig.all().await, []);
}

pub async fn a_tick_whose_task_is_refused_is_not_spent(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick))).await.unwrap();
    let bad = NewTask { max_attempts: Some(0), ..task("a") };
    assert!(schedules.fire(fire("s", tick, Some(bad))).await.is_err());
    assert_eq!(schedules.list().await.unwrap()[0].next_at, Some(tick));
}

pub async fn the_task_of_a_tick_goes_through_keys_and_gates(harness: &dyn Harness) {
    if !harness.fires_as_told() {
        return;
    }
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let schedules = rig.store.schedules();
    let tick = harness.now().await;
    schedules.put(&row("s", Some(tick.before(2 * HOUR)))).await.unwrap();
    let of_tick = |key: &str| NewTask { key: keyed(key).key, job: Some(name("j")), ..step_of("w") };
    let mut fired = Vec::new();
    for (hours, key) in [(2, "1"), (1, "2"), (0, "2")] {
        let fire = fire("s", tick.before(hours * HOUR), Some(of_tick(key)));
        fired.push(schedules.fire(fire).await.unwrap().unwrap());
    }
    let (first, second, same) = (fired[0], fired[1], fired[2]);
    assert_eq!((same.id, same.existing), (second.id, true));
    assert_eq!(rig.states(&[first.id, second.id]).await, [State::Ready, State::Waiting]);
    let steps = Filter { workflow: Some(name("w")), ..Filter::default() };
    assert_eq!(list(&*rig.store, &steps).await.len(), 2);
    assert_eq!(worker.claim_ids(MANY).await, [first.id]);
    rig.assert_sound().await;
}
