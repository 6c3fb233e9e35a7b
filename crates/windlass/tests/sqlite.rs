//! The library on the embedded store: an address, a file, a worker, a result.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use windlass::{
    Client, Error, Outcome, Task, TaskState, Worker, testing,
    time::{ManualClock, Timestamp},
};

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Double(u64);

async fn double(Double(n): Double) -> Result<Outcome, windlass::Error> {
    Outcome::done(&(2 * n))
}

#[tokio::test]
async fn a_task_survives_the_store_being_closed_and_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("app.db").display());
    let store = windlass::open(&url).await.unwrap();
    let id = Client::new(store.clone()).enqueue(Double(21)).await.unwrap().id;
    let second = windlass::open(&url).await.err().unwrap();
    assert!(matches!(second, Error::Conflict(_)), "{second}");
    store.close().await.unwrap();
    drop(store);

    let store = windlass::open(&url).await.unwrap();
    let ended = testing::run_until_idle(Worker::builder(store.clone()).handle(double)).await.unwrap();
    assert_eq!(ended.iter().map(|task| (task.id, task.state)).collect::<Vec<_>>(), [(id, TaskState::Done)]);
    assert_eq!(Client::new(store).output::<u64>(id, Duration::from_mins(1)).await.unwrap(), 42);
}

#[tokio::test]
async fn a_result_is_awaited_while_a_worker_runs_in_the_same_process() {
    let store = testing::store().await.unwrap();
    let client = Client::new(store.clone());
    let worker = Worker::builder(store).handle(double).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    let calls = testing::call_many(
        move |n: u64| {
            let client = client.clone();
            async move { client.enqueue(Double(n)).output::<u64>().await }
        },
        0..200,
    )
    .await;
    for (n, call) in (0..).zip(&calls) {
        assert_eq!(call.returned(), Some(&Ok(2 * n)));
    }
    handle.drain();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_retry_runs_when_the_test_moves_the_clock() {
    async fn second_time_lucky(_: Double, ctx: windlass::Context) -> Result<(), &'static str> {
        if ctx.attempt() == 1 { Err("not yet") } else { Ok(()) }
    }
    let clock = Arc::new(ManualClock::new(Timestamp::from_ms(1_763_000_000_000)));
    let store = testing::store_with_clock(clock.clone()).await.unwrap();
    let id = Client::new(store.clone()).enqueue(Double(1)).await.unwrap().id;
    let worker = || Worker::builder(store.clone()).handle(second_time_lucky);
    assert_eq!(testing::run_until_idle(worker()).await.unwrap(), []);
    clock.advance(Duration::from_mins(1));
    let ended = testing::run_until_idle(worker()).await.unwrap();
    assert_eq!(ended.iter().map(|task| (task.id, task.state)).collect::<Vec<_>>(), [(id, TaskState::Done)]);
}

#[tokio::test]
async fn a_missing_folder_and_a_foreign_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = format!("sqlite:{}", folder.path().join("no/such/app.db").display());
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "not a database, and long enough to be sure of it".repeat(100)).unwrap();
    for url in [nowhere, format!("sqlite:{}", file.display())] {
        let error = windlass::open(&url).await.err().unwrap().to_string();
        assert!(!error.contains('\n') && error.contains(folder.path().to_str().unwrap()), "{error}");
    }
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_costs_neither_a_lease_nor_a_task() {
    let start = Timestamp::from_ms(1_800_000_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let store = testing::store_with_clock(clock.clone()).await.unwrap();
    let client = Client::new(store.clone());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let waits = |Double(n): Double, windlass::State(gate): windlass::State<Arc<tokio::sync::Semaphore>>| async move {
        if n == 1 {
            gate.acquire().await?.forget();
        }
        Ok::<(), tokio::sync::AcquireError>(())
    };
    let worker = Worker::builder(store.clone()).state(gate.clone()).handle(waits).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));
    let first = client.enqueue(Double(1)).await.unwrap().id;
    while handle.status().running == 0 {
        tokio::task::yield_now().await;
    }
    let hour = Duration::from_hours(1);
    for wall in [start.after(hour), start.before(hour)] {
        clock.jump_wall(wall);
        // A sweep of another worker takes nothing from this one, and a new task starts now.
        assert_eq!(store.expire_workers(100).await.unwrap().moved, 0);
        let id = client.enqueue(Double(2)).await.unwrap().id;
        assert_eq!(client.wait(id, Duration::from_mins(1)).await.unwrap().state, TaskState::Done);
    }
    gate.add_permits(1);
    assert_eq!(client.wait(first, Duration::from_mins(1)).await.unwrap().state, TaskState::Done);
    assert_eq!((handle.status().self_fences, handle.status().lease_losses), (0, 0));
    handle.drain();
    running.await.unwrap().unwrap();
}
