//! Slots taken in advance.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use windlass::pool::JoinError;

use crate::{Gate, OnDrop, pool};

async fn drop_number(task: impl Future<Output = usize>) {
    task.await;
}

fn is_ready(future: impl Future) -> bool {
    matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

#[tokio::test]
async fn unused_slots_of_a_reservation_are_returned() {
    let pool = pool(5, 1);
    let first = pool.reserve(3);
    let second = pool.reserve(3);
    assert_eq!((first.len(), second.len(), pool.reserve(1).len()), (3, 2, 0));
    assert_eq!((pool.gauges().reserved, pool.gauges().idle), (5, 0));
    drop(first);
    assert_eq!(pool.gauges().idle, 3);
    drop(second);
    assert_eq!(pool.gauges().idle, 5);
    let mut third = pool.reserve(usize::MAX);
    third.release(2);
    assert_eq!((third.len(), pool.gauges().idle), (3, 2));
}

#[tokio::test]
async fn a_started_task_runs_at_once_despite_a_full_buffer() {
    let (pool, mut gate) = (pool(2, 1), Gate::new());
    let mut reserved = pool.reserve(1);
    let running = pool.dispatch(gate.task(0)).unwrap();
    let buffered = pool.dispatch(gate.task(1)).unwrap();
    assert!(pool.dispatch(async {}).is_err());

    assert!(reserved.start(drop_number(gate.task(2))));
    assert!(!reserved.start(async {}), "there was one slot and it is used");
    assert_eq!((gate.started().await, gate.started().await), (0, 2));
    assert_eq!((pool.gauges().running, pool.gauges().buffered), (2, 1));
    gate.let_go(3);
    assert_eq!((running.await, buffered.await), (Ok(0), Ok(1)));
    pool.stop(Duration::from_mins(1)).await;
    assert_eq!((pool.gauges().completed, pool.gauges().idle), (3, 2));
}

#[tokio::test]
async fn every_started_task_runs_at_the_same_time_as_the_others() {
    const TASKS: usize = 10_000;
    let (pool, mut gate) = (pool(TASKS, 1), Gate::new());
    let mut reserved = pool.reserve(TASKS);
    for number in 0..TASKS {
        assert!(reserved.start(drop_number(gate.task(number))));
    }
    for _ in 0..TASKS {
        gate.started().await;
    }
    assert_eq!(pool.gauges().running, TASKS);
    gate.let_go(TASKS);
    let report = pool.stop(Duration::from_mins(1)).await;
    assert_eq!(report.drained, TASKS as u64);
}

#[tokio::test]
async fn a_slot_that_is_given_back_unused_goes_to_the_buffer() {
    let pool = pool(1, 1);
    let reserved = pool.reserve(1);
    let buffered = pool.dispatch(async { 9 }).unwrap();
    tokio::task::yield_now().await;
    assert_eq!(pool.gauges().buffered, 1, "the only slot is reserved");
    drop(reserved);
    assert_eq!(buffered.await, Ok(9));
}

#[tokio::test]
async fn a_buffered_task_is_not_overtaken_at_a_free_slot() {
    let (pool, mut gate) = (pool(1, 2), Gate::new());
    let reserved = pool.reserve(1);
    let first = pool.dispatch(gate.task(1)).unwrap();
    drop(reserved);
    // The slot is free and the first task has not taken it yet.
    let second = pool.dispatch(gate.task(2)).unwrap();
    gate.let_go(2);
    assert_eq!((first.await, second.await), (Ok(1), Ok(2)));
    assert_eq!((gate.started().await, gate.started().await), (1, 2));
}

#[tokio::test]
async fn a_slot_is_free_again_after_an_end_a_panic_and_an_abort() {
    let (pool, mut gate) = (pool(3, 1), Gate::new());
    let mut reserved = pool.reserve(3);
    reserved.start(async {});
    reserved.start(async { panic!("a handler that the executor did not catch") });
    let (on_drop, dropped) = OnDrop::new();
    let stuck = gate.task(0);
    reserved.start(async move {
        let _on_drop = on_drop;
        stuck.await;
    });
    gate.started().await;
    while pool.gauges().completed + pool.gauges().panicked < 2 {
        pool.freed().await;
    }
    assert_eq!((pool.gauges().idle, pool.gauges().running), (2, 1));
    let report = pool.stop(Duration::ZERO).await;
    dropped.await.unwrap();
    assert_eq!(report.aborted, 1);
    assert_eq!((pool.gauges().idle, pool.gauges().running, pool.gauges().reserved), (3, 0, 0));
}

#[tokio::test]
async fn several_freed_slots_give_one_wake_up() {
    let pool = pool(4, 1);
    assert!(!is_ready(pool.freed()), "nothing was freed yet");
    for _ in 0..3 {
        drop(pool.reserve(2));
    }
    assert!(is_ready(pool.freed()));
    assert!(!is_ready(pool.freed()), "all of it was told in one go");
    drop(pool.reserve(1));
    assert!(is_ready(pool.freed()));
}

#[tokio::test]
async fn a_slot_freed_between_the_look_and_the_wait_is_not_missed() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let mut reserved = pool.reserve(1);
    reserved.start(drop_number(gate.task(0)));
    assert_eq!(pool.reserve(1).len(), 0);
    gate.let_go(1);
    while pool.gauges().completed == 0 {
        tokio::task::yield_now().await;
    }
    // The task ended before the wait began.
    pool.freed().await;
    assert_eq!(pool.reserve(1).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_slot_leaks_under_panics_and_aborted_callers() {
    const SIZE: usize = 4;
    let pool = pool(SIZE, 8);
    let inside = Arc::new(AtomicUsize::new(0));
    let task = |number: usize| {
        let inside = inside.clone();
        async move {
            assert!(inside.fetch_add(1, SeqCst) < SIZE);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, SeqCst);
            assert!(!number.is_multiple_of(7), "every seventh fails");
        }
    };
    let coordinator = tokio::spawn({
        let (pool, tasks): (_, Vec<_>) = (pool.clone(), (0..2_000).map(task).collect());
        async move {
            let mut tasks = tasks.into_iter().peekable();
            while tasks.peek().is_some() {
                // Asks for more slots than it will use, like a claim that finds too few tasks.
                let mut reserved = pool.reserve(3);
                if reserved.is_empty() {
                    pool.freed().await;
                }
                while reserved.len() > 1 {
                    let Some(task) = tasks.next() else { break };
                    assert!(reserved.start(task));
                }
                if reserved.len() == 1
                    && let Some(task) = tasks.next()
                {
                    assert!(reserved.start(task));
                }
            }
        }
    });
    let mut callers: Vec<_> = (0..500)
        .map(|number| {
            let (pool, task) = (pool.clone(), task(number));
            tokio::spawn(
                async move { pool.dispatch_wait(task, Duration::from_mins(10)).await.ok()?.await.ok() },
            )
        })
        .collect();
    for caller in callers.iter().step_by(5) {
        caller.abort();
    }
    coordinator.await.unwrap();
    for caller in callers.drain(..) {
        let _ = caller.await;
    }
    let report = pool.stop(Duration::from_mins(1)).await;
    assert_eq!(report.cancelled + report.aborted, 0);
    let gauges = pool.gauges();
    assert_eq!((gauges.running, gauges.starting, gauges.reserved, gauges.buffered), (0, 0, 0, 0));
    assert_eq!(gauges.idle, SIZE);
    assert_eq!(gauges.accepted, gauges.completed + gauges.panicked);
}

#[tokio::test]
async fn a_stopping_pool_starts_tasks_of_earlier_reservations() {
    let pool = pool(2, 1);
    let mut reserved = pool.reserve(2);
    let stopping = tokio::spawn({
        let pool = pool.clone();
        async move { pool.stop(Duration::from_mins(1)).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(pool.reserve(1).len(), 0);
    assert!(reserved.start(async {}));
    drop(reserved);
    assert_eq!(stopping.await.unwrap().drained, 1);
}

#[tokio::test]
async fn a_stopped_pool_drops_tasks_of_an_old_reservation() {
    let pool = pool(2, 1);
    let mut reserved = pool.reserve(2);
    pool.stop(Duration::ZERO).await;
    let (on_drop, dropped) = OnDrop::new();
    assert!(!reserved.start(async move {
        let _on_drop = on_drop;
    }));
    dropped.await.unwrap();
    drop(reserved);
    assert_eq!(pool.gauges().idle, 2);
    assert_eq!(JoinError::Aborted.to_string(), "the pool ended before the task did");
}
