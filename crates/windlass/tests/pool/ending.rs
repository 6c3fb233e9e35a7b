//! Tasks that panic, run too long, or are aborted: nothing else is affected, and their slot is returned once.

use std::time::Duration;

use tokio::{sync::oneshot, time::Instant};
use windlass::{
    Pool,
    handler::CancelReason,
    pool::{DispatchOptions, JoinError},
};

use crate::{Gate, OnDrop, pool};

#[tokio::test]
async fn a_panicking_task_affects_no_consumer_and_no_other_task() {
    let (pool, mut gate) = (pool(2, 10), Gate::new());
    let neighbour = pool.dispatch(gate.task(7)).unwrap();
    gate.started().await;
    for _ in 0..5 {
        let failed = pool.dispatch(async { panic!("no luck") }).unwrap().await;
        assert_eq!(failed, Err::<(), _>(JoinError::Panicked("no luck".to_owned())));
    }
    gate.let_go(1);
    assert_eq!(neighbour.await, Ok(7));
    let gauges = pool.gauges();
    assert_eq!((gauges.panicked, gauges.completed, gauges.running, gauges.idle), (5, 1, 0, 2));
    assert!(gauges.consumers <= 2, "no consumer had to be replaced");
}

#[tokio::test]
async fn a_panic_after_an_await_is_caught_as_well() {
    let pool = pool(1, 1);
    let task = async {
        tokio::task::yield_now().await;
        panic!("later: {}", 2)
    };
    assert_eq!(pool.dispatch(task).unwrap().await, Err::<(), _>(JoinError::Panicked("later: 2".to_owned())));
    assert_eq!(pool.dispatch(async { 1 }).unwrap().await, Ok(1));
}

#[tokio::test]
async fn a_panic_in_the_function_that_makes_the_task_is_caught() {
    let pool = pool(1, 1);
    let make = |_| -> std::future::Ready<()> { panic!("not made") };
    let failed = pool.dispatch_with(make, DispatchOptions::default()).unwrap().await;
    assert_eq!(failed, Err(JoinError::Panicked("not made".to_owned())));
    assert_eq!(pool.gauges().idle, 1);
}

#[tokio::test]
async fn a_panic_while_a_task_is_dropped_is_caught() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let pool = pool(1, 1);
    // The future has ended and still owns the bomb: it panics when the pool drops it.
    let bomb = Bomb;
    let task = std::future::poll_fn(move |_| {
        let _ = &bomb;
        std::task::Poll::Ready(5)
    });
    assert_eq!(pool.dispatch(task).unwrap().await, Ok(5));
    assert_eq!(pool.dispatch(async { 6 }).unwrap().await, Ok(6));
    assert_eq!(pool.gauges().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_past_its_deadline_ends_with_that_reason() {
    let pool = pool(1, 1);
    let (sender, context) = oneshot::channel();
    let (on_drop, dropped) = OnDrop::new();
    let endless = |cancellation| {
        sender.send(cancellation).ok().unwrap();
        async move {
            let _on_drop = on_drop;
            std::future::pending::<()>().await;
        }
    };
    let before = Instant::now();
    let limit = Duration::from_secs(5);
    let ended = pool.dispatch_with(endless, DispatchOptions::within(limit)).unwrap().await;
    assert_eq!(ended, Err(JoinError::DeadlineExceeded(limit)));
    assert_eq!(before.elapsed().as_secs(), 5);
    dropped.await.unwrap();
    let context: windlass::handler::Cancellation = context.await.unwrap();
    assert_eq!(context.reason(), Some(&CancelReason::Deadline));
    let gauges = pool.gauges();
    assert_eq!((gauges.deadline_exceeded, gauges.running, gauges.idle), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_the_start_of_the_task() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let first = pool.dispatch(gate.task(0)).unwrap();
    let slow = |_| async { tokio::time::sleep(Duration::from_secs(4)).await };
    let second = pool.dispatch_with(slow, DispatchOptions::within(Duration::from_secs(5))).unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    gate.let_go(1);
    assert_eq!((first.await, second.await), (Ok(0), Ok(())));
}

#[test]
fn a_task_that_is_over_at_once_needs_no_timer_for_its_deadline() {
    // A runtime without timers: registering one would panic.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let pool = pool(1, 1);
        let options = DispatchOptions::within(Duration::from_secs(1));
        assert_eq!(pool.dispatch_with(|_| async { 3 }, options).unwrap().await, Ok(3));
        let waits = pool.dispatch_with(|_| std::future::pending::<()>(), options).unwrap().await;
        assert!(matches!(waits, Err(JoinError::Panicked(_))), "{waits:?}");
        assert_eq!(pool.gauges().idle, 1);
    });
}

#[tokio::test]
async fn a_dropped_pool_aborts_its_tasks_and_their_handles() {
    let (pool, mut gate) = (pool(1, 2), Gate::new());
    let (on_drop, dropped) = OnDrop::new();
    let running = pool.dispatch(gate.task(0)).unwrap();
    let buffered = pool
        .dispatch(async move {
            let _on_drop = on_drop;
        })
        .unwrap();
    gate.started().await;
    drop(pool);
    assert_eq!(buffered.await, Err(JoinError::Aborted));
    assert_eq!(running.await, Err(JoinError::Aborted));
    dropped.await.unwrap();
}

#[tokio::test]
async fn a_pool_lives_as_long_as_its_last_clone() {
    let (pool, mut gate) = (pool(1, 1), Gate::new());
    let clone = pool.clone();
    let running = pool.dispatch(gate.task(0)).unwrap();
    gate.started().await;
    drop(pool);
    gate.let_go(1);
    assert_eq!(running.await, Ok(0));
    assert_eq!(clone.dispatch(async { 1 }).unwrap().await, Ok(1));
}

#[tokio::test]
async fn a_task_may_add_tasks_to_its_pool_and_be_its_last_owner() {
    let pool = pool(2, 2);
    let inner = pool.clone();
    let outer = pool.dispatch(async move { inner.dispatch(async { 4 }).unwrap().await }).unwrap();
    assert_eq!(outer.await, Ok(Ok(4)));

    let (sender, receiver) = oneshot::channel::<Pool>();
    let last = pool.dispatch(async move { drop(receiver.await) }).unwrap();
    sender.send(pool).ok().unwrap();
    assert!(matches!(last.await, Ok(()) | Err(JoinError::Aborted)));
}

#[test]
fn a_runtime_that_goes_away_leaves_no_handle_waiting() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let pool = Pool::builder().size(2).buffer(4).runtime(runtime.handle().clone()).build().unwrap();
    let running: Vec<_> = (0..4).map(|_| pool.dispatch(std::future::pending::<()>()).unwrap()).collect();
    drop(runtime);
    let late = pool.dispatch(async {});
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    drop(pool);
    for handle in running.into_iter().chain(late) {
        assert_eq!(other.block_on(handle), Err(JoinError::Aborted));
    }
}
