//! The client on a store in memory, without a worker.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{sync::Arc, time::Duration};

use support::{clock, memory, staged, succeed};
use tokio::time::Instant;
use windlass::{
    Client, Error, Payload, RetryPolicy, Task, TaskId, TaskState,
    client::{WAIT_INTERVAL, Waiters},
    store::{Filter, Rules, SharedStore},
    task::Start,
    time::Timestamp,
};
use windlass_conformance::{MemoryStore, staged::On};

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(queue = "mail", max_attempts = 5, timeout = "30s", priority = -2, retry_base = "10s")]
struct SendEmail {
    to: String,
}

fn mail(to: &str) -> SendEmail {
    SendEmail { to: to.into() }
}

fn client() -> Client {
    Client::new(memory())
}

async fn count(client: &Client) -> usize {
    client.store().tasks(&Filter::default(), None, 100).await.unwrap().tasks.len()
}

#[tokio::test]
async fn a_task_carries_the_settings_of_its_type() {
    let client = client();
    let id = client.enqueue(mail("a@b.c")).await.unwrap().id;
    let task = client.task(id).await.unwrap().unwrap();
    assert_eq!((task.lane.queue.as_str(), task.lane.kind.as_str()), ("mail", "send_email"));
    assert_eq!((task.max_attempts, task.priority), (5, -2));
    assert_eq!(task.timeout, Some(Duration::from_secs(30)));
    assert_eq!(task.payload.decode::<SendEmail>().unwrap().to, "a@b.c");
    assert_eq!((task.job, task.workflow, task.key), (None, None, None));
}

#[tokio::test]
async fn every_setting_can_differ_for_one_task() {
    let store = staged();
    let client = Client::new(store.clone());
    let policy = RetryPolicy { base: Duration::from_secs(7), ..RetryPolicy::default() };
    let enqueue = client
        .enqueue(mail("a@b.c"))
        .job("tenant-7")
        .workflow("order-42")
        .on_failure(windlass::gate::OnFailure::Skip)
        .queue("bulk")
        .priority(3)
        .delay(Duration::from_mins(1))
        .key("welcome")
        .max_attempts(2)
        .timeout(Duration::from_secs(1))
        .retry(policy);
    // The store's answer does not matter here.
    let _ = enqueue.await;
    let [task] = &store.enqueued()[..] else { panic!("not one task") };
    assert_eq!(task.job.as_ref().unwrap().as_str(), "tenant-7");
    assert_eq!(task.workflow.as_ref().unwrap().as_str(), "order-42");
    assert_eq!(task.on_failure, Some(windlass::gate::OnFailure::Skip));
    assert_eq!(task.queue.as_str(), "bulk");
    assert_eq!((task.priority, task.max_attempts), (3, Some(2)));
    assert_eq!((task.timeout, task.retry), (Some(Duration::from_secs(1)), Some(policy)));
    assert_eq!(task.start, Start::In(Duration::from_mins(1)));
    assert_eq!(task.key.as_ref().unwrap().text, "welcome");
}

#[tokio::test]
async fn retry_delays_and_start_of_the_type_reach_the_store() {
    let store = staged();
    let client = Client::new(store.clone());
    let at = Timestamp::from_ms(1_800_000_000_000);
    client.enqueue(mail("a@b.c")).await.unwrap();
    client.enqueue(mail("a@b.c")).at(at).await.unwrap();
    let tasks = store.enqueued();
    let policy = tasks[0].retry.unwrap();
    assert_eq!((policy.base, policy.max), (Duration::from_secs(10), RetryPolicy::default().max));
    assert_eq!((tasks[0].start, tasks[1].start), (Start::Now, Start::At(at)));
}

#[tokio::test]
async fn a_bad_name_is_refused_when_awaited_and_nothing_is_enqueued() {
    let client = client();
    let error = client.enqueue(mail("a@b.c")).job(" tenant").priority(1).await.unwrap_err();
    assert!(error.to_string().contains("job \" tenant\""), "{error}");
    assert!(!format!("{:?}", client.enqueue(mail("s3cret"))).contains("s3cret"));
    assert_eq!(count(&client).await, 0);
}

#[tokio::test]
async fn a_batch_is_enqueued_completely_or_not_at_all() {
    let client = client();
    let ids = client.enqueue_all(["a", "b", "c"].map(mail)).await.unwrap();
    assert!(ids.is_sorted_by_key(|enqueued| enqueued.id));
    let too_large = mail(&"x".repeat(2 << 20));
    let error = client.enqueue_all([mail("d"), too_large]).await.unwrap_err();
    assert!(error.to_string().contains("payload_max_bytes"), "{error}");
    let error = client.enqueue_all((0..10_001).map(|_| mail("e"))).await.unwrap_err();
    assert!(error.to_string().contains("at most 10000"), "{error}");
    assert_eq!(client.enqueue_all(Vec::<SendEmail>::new()).await.unwrap(), []);
    assert_eq!(count(&client).await, 3);
}

#[tokio::test]
async fn one_key_gives_one_task_and_refuses_another_payload() {
    let client = client();
    let first = client.enqueue(mail("a")).key("k").await.unwrap();
    let again = client.enqueue(mail("a")).key("k").await.unwrap();
    assert_eq!((again.id, again.existing), (first.id, true));
    let error = client.enqueue(mail("b")).key("k").await.unwrap_err();
    assert_eq!(error, Error::KeyConflict { key: "k".into(), existing: first.id });
    let ignoring = client.enqueue(mail("b")).key("k").ignore_key_conflict().await.unwrap();
    assert_eq!((ignoring.id, ignoring.existing), (first.id, true));
}

#[tokio::test]
async fn cancel_returns_the_state_of_a_known_task() {
    let client = client();
    let id = client.enqueue(mail("a")).await.unwrap().id;
    assert_eq!(client.cancel(id, "not today").await.unwrap(), TaskState::Cancelled);
    assert!(matches!(client.retry(id).await.unwrap_err(), Error::Conflict(_)));
    let unknown = TaskId::from_raw(1);
    assert!(matches!(client.cancel(unknown, "x").await.unwrap_err(), Error::NotFound(_)));
    assert!(matches!(client.wait(unknown, Duration::from_secs(1)).await.unwrap_err(), Error::NotFound(_)));
    assert_eq!(client.task(unknown).await.unwrap(), None);
}

#[tokio::test]
async fn a_task_that_has_ended_is_repeated_once() {
    let client = client();
    let id = client.enqueue(mail("a@b.c")).job("tenant-7").await.unwrap().id;
    assert!(matches!(client.repeat(id).await, Err(Error::Conflict(_))), "it has not ended");
    client.cancel(id, "not now").await.unwrap();
    let again = client.task(client.repeat(id).await.unwrap()).await.unwrap().unwrap();
    assert_eq!(
        (again.lane.queue.as_str(), again.job.as_ref().map(ToString::to_string)),
        ("mail", Some("tenant-7".to_owned()))
    );
    assert_eq!(again.key, Some(format!("repeat-of:{id}")));
    let Err(Error::Conflict(told)) = client.repeat(id).await else { panic!("it was repeated twice") };
    assert!(told.contains(&again.id.to_string()), "{told}");
    assert!(matches!(client.repeat(TaskId::from_raw(1)).await, Err(Error::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_times_out_returns_the_current_task() {
    let client = client();
    let id = client.enqueue(mail("a")).await.unwrap().id;
    let task = client.wait(id, Duration::from_secs(5)).await.unwrap();
    assert_eq!((task.id, task.state), (id, TaskState::Ready));
    let error = client.output::<()>(id, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error, Error::Conflict(format!("task {id} has not ended: it is ready")));
}

#[tokio::test]
async fn the_output_of_a_task_is_read_as_a_typed_value() {
    let client = client();
    let long = Duration::from_mins(1);
    let id = client.enqueue(mail("a")).await.unwrap().id;
    succeed(client.store(), id, Some(Payload::json(&vec![1, 2]).unwrap())).await;
    assert_eq!(client.output::<Vec<u8>>(id, long).await.unwrap(), [1, 2]);
    let error = client.output::<String>(id, long).await.unwrap_err();
    assert!(error.to_string().contains(&format!("the output of task {id} is not of this type")), "{error}");

    let id = client.enqueue(mail("b")).await.unwrap().id;
    succeed(client.store(), id, None).await;
    client.output::<()>(id, long).await.unwrap();
    assert_eq!(client.output::<Option<u8>>(id, long).await.unwrap(), None);

    let id = client.enqueue(mail("c")).await.unwrap().id;
    client.cancel(id, "not today").await.unwrap();
    let error = client.output::<()>(id, long).await.unwrap_err();
    assert_eq!(error, Error::Conflict(format!("task {id} ended cancelled: not today")));
}

#[tokio::test]
async fn enqueue_and_wait_is_one_call() {
    let client = client();
    let waiting = tokio::spawn(client.enqueue(mail("a")).key("k").wait());
    let output = tokio::spawn(client.enqueue(mail("a")).key("k").output::<u8>());
    let id = client.enqueue(mail("a")).key("k").await.unwrap().id;
    succeed(client.store(), id, Some(Payload::json(&7).unwrap())).await;
    assert_eq!(waiting.await.unwrap().unwrap().state, TaskState::Done);
    assert_eq!(output.await.unwrap().unwrap(), 7);
}

/// Lets every task that can run do so, without moving the clock.
async fn settle_down() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_cost_one_query_per_interval() {
    let store = staged();
    let client = Client::new(store.clone());
    let ids = client.enqueue_all((0..1_000).map(|n| mail(&n.to_string()))).await.unwrap();
    let waiting: Vec<_> = ids
        .iter()
        .map(|enqueued| {
            let (client, id) = (client.clone(), enqueued.id);
            tokio::spawn(async move { client.wait(id, Duration::from_hours(1)).await })
        })
        .collect();
    settle_down().await;
    tokio::time::sleep(WAIT_INTERVAL).await;
    let before = store.calls(On::Ended);
    assert!(before <= 4, "{before} queries for the waiters to come");
    tokio::time::sleep(10 * WAIT_INTERVAL).await;
    let asked = store.calls(On::Ended) - before;
    assert!((9..=11).contains(&asked), "{asked} queries in 10 intervals");

    let ids: Vec<_> = ids.iter().map(|enqueued| enqueued.id).collect();
    client.store().cancel(&ids, "enough").await.unwrap();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap().state, TaskState::Cancelled);
    }
    assert!(store.calls(On::Ended) - before - asked <= 3, "one look brings all that ended together");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_ends_in_a_row_cost_few_queries() {
    let store = staged();
    let client = Client::new(store.clone());
    let ids = client.enqueue_all((0..1_000).map(|n| mail(&n.to_string()))).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for enqueued in &ids {
        let (client, id) = (client.clone(), enqueued.id);
        waiting.spawn(async move { client.wait(id, Duration::from_hours(1)).await });
    }
    settle_down().await;
    for enqueued in &ids {
        client.cancel(enqueued.id, "one by one").await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while let Some(ended) = waiting.join_next().await {
        assert_eq!(ended.unwrap().unwrap().state, TaskState::Cancelled);
    }
    assert!(store.calls(On::Ended) < 500, "{} queries", store.calls(On::Ended));
}

#[tokio::test(start_paused = true)]
async fn more_waiters_than_one_look_up_takes_are_all_answered() {
    let store = staged();
    let client = Client::new(store.clone());
    let mut waiting = tokio::task::JoinSet::new();
    let mut ids = Vec::new();
    for batch in [10_000, 1_000] {
        let enqueued = client.enqueue_all((0..batch).map(|n| mail(&n.to_string()))).await.unwrap();
        ids.extend(enqueued.iter().map(|enqueued| enqueued.id));
    }
    for id in &ids {
        let (client, id) = (client.clone(), *id);
        waiting.spawn(async move { client.wait(id, Duration::from_hours(1)).await });
    }
    settle_down().await;
    let started = Instant::now();
    client.store().cancel(&ids, "enough").await.unwrap();
    while let Some(ended) = waiting.join_next().await {
        assert_eq!(ended.unwrap().unwrap().state, TaskState::Cancelled);
    }
    assert!(started.elapsed() < WAIT_INTERVAL, "{:?} of paused time", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_new_waiter_does_not_wait_for_a_running_query() {
    let client = client();
    let slow = client.enqueue(mail("slow")).await.unwrap().id;
    let patient = tokio::spawn({
        let client = client.clone();
        async move { client.wait(slow, Duration::from_hours(1)).await }
    });
    settle_down().await;
    let quick = client.enqueue(mail("quick")).await.unwrap().id;
    client.cancel(quick, "at once").await.unwrap();
    let started = Instant::now();
    assert_eq!(client.wait(quick, Duration::from_mins(1)).await.unwrap().state, TaskState::Cancelled);
    assert!(started.elapsed() < WAIT_INTERVAL / 10, "{:?} of paused time", started.elapsed());
    patient.abort();
}

#[tokio::test(start_paused = true)]
async fn without_waiters_the_store_is_not_queried() {
    let store = staged();
    let client = Client::new(store.clone());
    let waiters = Waiters::new(store.clone());
    let id = client.enqueue(mail("a")).await.unwrap().id;
    tokio::time::sleep(10 * WAIT_INTERVAL).await;
    assert_eq!(store.calls(On::Ended), 0);

    let waiting = tokio::spawn({
        let waiters = waiters.clone();
        async move { waiters.ended(id).await }
    });
    settle_down().await;
    assert_eq!((waiters.count(), store.calls(On::Ended)), (1, 1));
    waiting.abort();
    settle_down().await;
    assert_eq!(waiters.count(), 0);
    let asked = store.calls(On::Ended);
    tokio::time::sleep(10 * WAIT_INTERVAL).await;
    assert_eq!(store.calls(On::Ended), asked);

    client.cancel(id, "x").await.unwrap();
    assert_eq!(waiters.ended(id).await.unwrap().state, TaskState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_fails_the_wait() {
    let client = client();
    let id = client.enqueue(mail("a")).await.unwrap().id;
    client.store().close().await.unwrap();
    let error = client.wait(id, Duration::from_secs(5)).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

#[test]
fn waiters_survive_the_runtime_that_looked_for_them() {
    let store: SharedStore = Arc::new(MemoryStore::new(clock(), Rules::default()));
    let client = Client::new(store);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let id = first.block_on(client.enqueue(mail("a")).into_future()).unwrap().id;
    let short = Duration::from_millis(1);
    let waits_for_ever = client.clone();
    first.spawn(async move { waits_for_ever.wait(id, Duration::from_hours(1)).await });
    first.block_on(async { assert_eq!(client.wait(id, short).await.unwrap().state, TaskState::Ready) });
    drop(first);
    second.block_on(async {
        client.cancel(id, "x").await.unwrap();
        let ended = client.wait(id, Duration::from_mins(1)).await.unwrap();
        assert_eq!(ended.state, TaskState::Cancelled);
    });
}

#[tokio::test]
async fn keys_make_a_batch_safe_to_repeat() {
    let client = client();
    let batch = || ["a", "b"].map(|to| (format!("mail-{to}"), mail(to)));
    let first = client.enqueue_all_keyed(batch()).await.unwrap();
    let again = client.enqueue_all_keyed(batch()).await.unwrap();
    assert!(first.iter().all(|task| !task.existing) && again.iter().all(|task| task.existing));
    assert_eq!((first[1].id, count(&client).await), (again[1].id, 2));
    let error = client.enqueue_all_keyed([("mail-a", mail("other"))]).await.unwrap_err();
    assert!(matches!(error, Error::KeyConflict { .. }), "{error}");
}

#[tokio::test]
async fn queues_tell_their_depth_and_are_paused() {
    let client = client();
    client.enqueue_all(["a", "b"].map(mail)).await.unwrap();
    client.enqueue(mail("c")).delay(Duration::from_mins(1)).await.unwrap();
    client.enqueue_raw(windlass::NewTask { queue: name("mail"), ..raw("other") }).await.unwrap();
    let depth = client.queues().depth("mail").await.unwrap();
    assert_eq!((depth.ready, depth.scheduled), (3, 1), "over all kinds");
    assert_eq!(client.queues().depth("none").await.unwrap(), windlass::store::Depth::default());

    assert!(client.queues().pause("mail").await.unwrap() && client.queues().pause("later").await.unwrap());
    assert!(!client.queues().pause("mail").await.unwrap(), "already");
    let queues = client.queues().list().await.unwrap();
    let shown: Vec<_> =
        queues.iter().map(|queue| (queue.name.as_str(), queue.paused, queue.kinds.len())).collect();
    assert_eq!(shown, [("later", true, 0), ("mail", true, 2)]);
    assert_eq!(queues[1].depth(), depth);
    assert!(client.queues().resume("mail").await.unwrap());
    assert!(client.queues().depth(" mail").await.is_err());
}

#[tokio::test]
async fn jobs_are_limited_paused_and_removed() {
    let client = client();
    let jobs = client.jobs();
    client.enqueue(mail("a")).job("new").job_concurrency(2).await.unwrap();
    assert_eq!(jobs.get("new").await.unwrap().concurrency, Some(2));
    client.enqueue(mail("a")).job("new").job_concurrency(9).await.unwrap();
    assert_eq!(jobs.get("new").await.unwrap().concurrency, Some(2), "a job that is there keeps its limit");

    jobs.set_concurrency("site", 3).await.unwrap();
    let site = jobs.set_delay("site", Duration::from_secs(1)).await.unwrap();
    assert_eq!((site.concurrency, site.delay), (Some(3), Some(Duration::from_secs(1))));
    assert_eq!(jobs.set_concurrency("site", None).await.unwrap().concurrency, None);
    assert_eq!(jobs.pause("site").await.unwrap().state, windlass::gate::JobState::Paused);
    assert_eq!(jobs.resume("site").await.unwrap().state, windlass::gate::JobState::Active);
    assert_eq!(jobs.cancel("site").await.unwrap().state, windlass::gate::JobState::Cancelled);

    let names = async |after: Option<&windlass::Name>| -> Vec<String> {
        jobs.list(after, 10).await.unwrap().into_iter().map(|job| job.name.to_string()).collect()
    };
    assert_eq!(names(None).await, ["new", "site"]);
    assert_eq!(names(Some(&name("new"))).await, ["site"]);
    assert_eq!(jobs.remove("new").await.unwrap(), 2);
    for missing in [
        jobs.pause("nwe").await,
        jobs.resume("nwe").await,
        jobs.cancel_now("nwe").await,
        jobs.get("nwe").await,
    ] {
        assert!(matches!(missing, Err(Error::NotFound(_))), "a mistyped name creates no job");
    }
    assert!(matches!(jobs.remove_now("nwe").await, Err(Error::NotFound(_))));
    assert_eq!(names(None).await, ["site"]);
}

fn name(text: &str) -> windlass::Name {
    windlass::Name::new("name", text).unwrap()
}

fn raw(kind: &str) -> windlass::NewTask {
    windlass::NewTask::new(kind, Payload::json(&()).unwrap()).unwrap()
}
