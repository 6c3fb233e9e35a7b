//! Typed handlers from enqueue to their end, on a store in memory.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{sync::Arc, time::Duration};

use support::{clock, memory};
use windlass::{
    Client, Context, Name, NewTask, Outcome, Payload, State, Task, TaskRecord, TaskState, Worker,
    store::Rules,
    testing::{self, Call},
};
use windlass_conformance::MemoryStore;

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Add(u32, u32);

#[derive(Clone)]
struct Offset(u32);
#[derive(Clone)]
struct Factor(u32);
#[derive(Clone)]
struct Label(&'static str);

fn done(value: &impl serde::Serialize) -> Result<Outcome, windlass::Error> {
    Outcome::done(value)
}

fn output(task: &TaskRecord) -> u32 {
    task.output.as_ref().unwrap().decode().unwrap()
}

#[tokio::test]
async fn a_handler_gets_its_payload_context_and_states() {
    async fn payload(Add(a, b): Add) -> Result<Outcome, windlass::Error> {
        done(&(a + b))
    }
    async fn context(Add(a, _): Add, ctx: Context) -> Result<Outcome, windlass::Error> {
        done(&(a + ctx.attempt()))
    }
    async fn state(Add(a, b): Add, State(Offset(offset)): State<Offset>) -> Result<Outcome, windlass::Error> {
        done(&(a + b + offset))
    }
    async fn all(
        Add(a, b): Add,
        ctx: Context,
        label: State<Label>,
        offset: State<Offset>,
        factor: State<Factor>,
    ) -> Result<Outcome, windlass::Error> {
        done(&((a + b + ctx.attempt()) * factor.0.0 + offset.0.0 + label.0.0.len() as u32))
    }
    let store = memory();
    let client = Client::new(store.clone());
    for kind in ["payload", "context", "state", "all"] {
        client.enqueue_raw(NewTask::new(kind, Payload::json(&Add(1, 2)).unwrap()).unwrap()).await.unwrap();
    }
    let builder = Worker::builder(store)
        .state(Offset(100))
        .handle_kind("payload", payload)
        .handle_kind("context", context)
        .handle_kind("state", state)
        .state(Factor(10))
        .state(Label("four"))
        .handle_kind("all", all);
    let ended = testing::run_until_idle(builder).await.unwrap();
    assert_eq!(ended.iter().map(output).collect::<Vec<_>>(), [3, 2, 103, 144]);
}

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(max_attempts = 1)]
struct Try(String);

#[derive(Debug, thiserror::Error)]
#[error("cannot send")]
struct SendError(#[source] std::num::ParseIntError);

async fn attempt(Try(what): Try) -> Result<Outcome, windlass::handler::BoxError> {
    match what.as_str() {
        "fail" => Err("the peer hung up".into()),
        "fail with a cause" => Err(SendError("x".parse::<u8>().unwrap_err()).into()),
        "panic" => panic!("out of ink"),
        "cancel" => Ok(Outcome::cancel("not wanted")),
        "dead" => Ok(Outcome::dead("no such address")),
        "snooze" => Ok(Outcome::snooze(Duration::from_mins(1))),
        _ => Ok(().into()),
    }
}

#[tokio::test]
async fn the_return_value_of_a_handler_ends_its_own_task() {
    let store = memory();
    let client = Client::new(store.clone());
    let tries = ["work", "fail", "fail with a cause", "panic", "cancel", "dead", "snooze"];
    let enqueued = client.enqueue_all(tries.map(|what| Try(what.into()))).await.unwrap();
    let ended = testing::run_until_idle(Worker::builder(store).handle(attempt)).await.unwrap();
    let ended: Vec<_> = ended.iter().map(|task| (task.state, task.error.as_deref().unwrap_or(""))).collect();
    assert_eq!(
        ended[..3],
        [
            (TaskState::Done, ""),
            (TaskState::Dead, "attempt 1 of 1: the peer hung up"),
            (TaskState::Dead, "attempt 1 of 1: cannot send: invalid digit found in string"),
        ]
    );
    assert!(ended[3].0 == TaskState::Dead && ended[3].1.contains("out of ink"), "{:?}", ended[3]);
    assert_eq!(ended[4..], [(TaskState::Cancelled, "not wanted"), (TaskState::Dead, "no such address")]);
    let snoozed = client.task(enqueued[6].id).await.unwrap().unwrap();
    assert_eq!((snoozed.state, snoozed.attempt), (TaskState::Scheduled, 0));
}

#[tokio::test]
async fn an_undecodable_payload_is_dead_after_its_attempts() {
    let clock = clock();
    let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
    let client = Client::new(store.clone());
    let payload = Payload::json(&"s3cret").unwrap();
    let id = client.enqueue_raw(NewTask::new("add", payload).unwrap()).max_attempts(2).await.unwrap().id;
    let builder = || Worker::builder(store.clone()).handle(async |_: Add| {});
    assert_eq!(testing::run_until_idle(builder()).await.unwrap(), []);
    let retried = client.task(id).await.unwrap().unwrap();
    assert_eq!((retried.state, retried.attempt), (TaskState::Scheduled, 1));

    clock.advance(Duration::from_secs(10));
    let ended = testing::run_until_idle(builder()).await.unwrap();
    assert_eq!((ended.len(), ended[0].state), (1, TaskState::Dead));
    let error = ended[0].error.clone().unwrap();
    assert!(error.starts_with("attempt 2 of 2: payload does not decode: invalid type: string"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn build_refuses_a_kind_with_two_handlers_or_a_bad_name() {
    let refusal = |builder: windlass::worker::WorkerBuilder| builder.build().err().unwrap().to_string();
    let twice = Worker::builder(memory()).handle(async |_: Add| {}).handle_kind("add", async |_: Add| {});
    assert_eq!(refusal(twice), "kind \"add\" has two handlers; keep one of them");
    let unnamed = Worker::builder(memory()).handle_kind("", async |_: Add| {}).slots(1);
    assert_eq!(refusal(unnamed), "kind must not be empty");
    let queues = Worker::builder(memory()).handle(async |_: Add| {}).queues(["ok", " bad"]);
    assert!(refusal(queues).contains("queue \" bad\""));
    let slots = Worker::builder(memory()).handle(async |_: Add| {}).slots(0);
    assert!(refusal(slots).contains("slots"));
    assert!(Worker::builder(memory()).handle(async |_: Add| {}).queues(["mail"]).build().is_ok());
}

#[tokio::test]
async fn run_until_idle_returns_tasks_that_ended_in_this_run() {
    async fn count_down(Add(left, _): Add, State(client): State<Client>) -> Result<(), windlass::Error> {
        if left > 0 {
            client.enqueue(Add(left - 1, 0)).await?;
        }
        Ok(())
    }
    let store = memory();
    let client = Client::new(store.clone());
    let builder = || Worker::builder(store.clone()).state(client.clone()).handle(count_down);
    client.enqueue(Add(4, 0)).await.unwrap();
    assert_eq!(testing::run_until_idle(builder()).await.unwrap().len(), 5);
    assert_eq!(testing::run_until_idle(builder()).await.unwrap().len(), 0);
    client.enqueue(Add(0, 0)).await.unwrap();
    assert_eq!(testing::run_until_idle(builder()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn run_until_idle_leaves_tasks_that_may_not_run_yet() {
    let store = memory();
    let client = Client::new(store.clone());
    let stranger = NewTask::new("stranger", Payload::json(&()).unwrap()).unwrap();
    let mut left = vec![
        client.enqueue_raw(stranger).await.unwrap().id,
        client.enqueue(Add(1, 1)).delay(Duration::from_mins(1)).await.unwrap().id,
        client.enqueue(Add(1, 1)).queue("paused").await.unwrap().id,
        client.enqueue(Add(1, 1)).queue("elsewhere").await.unwrap().id,
    ];
    let run = client.enqueue(Add(1, 1)).await.unwrap().id;
    client.store().set_queue_paused(&Name::new("queue", "paused").unwrap(), true).await.unwrap();
    let builder = Worker::builder(store).handle(async |_: Add| {}).queues(["default", "paused"]);
    let ended = testing::run_until_idle(builder).await.unwrap();
    assert_eq!(ended.iter().map(|task| task.id).collect::<Vec<_>>(), [run]);
    for id in left.drain(..) {
        assert!(!client.task(id).await.unwrap().unwrap().state.is_ended(), "{id}");
    }
}

#[tokio::test]
async fn many_calls_at_once_give_their_results_and_panics_in_order() {
    let together = Arc::new(tokio::sync::Barrier::new(50));
    let handler = move |n: u32| {
        let together = together.clone();
        async move {
            // This passes only if all calls run at the same time.
            together.wait().await;
            assert!(n != 7, "seven");
            if n.is_multiple_of(2) { Ok(n) } else { Err(format!("{n} is odd")) }
        }
    };
    let calls = testing::call_many(handler, 0..50).await;
    assert_eq!(calls.len(), 50);
    assert_eq!(calls[7], Call::Panicked("seven".into()));
    assert_eq!(calls[8].returned(), Some(&Ok(8)));
    assert_eq!(calls[9].returned(), Some(&Err("9 is odd".into())));
    assert_eq!(calls.iter().filter(|call| call.panicked().is_some()).count(), 1);
}
