//! Stopping in two phases, with a report.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use windlass::{
    Pool, Rejected,
    handler::{CancelReason, Cancellation},
    pool::{DispatchOptions, JoinError, StopReport},
};

use crate::{Gate, OnDrop, pool};

const DEADLINE: Duration = Duration::from_secs(100);

fn stop(pool: &Pool, deadline: Duration) -> tokio::task::JoinHandle<StopReport> {
    let pool = pool.clone();
    tokio::spawn(async move { pool.stop(deadline).await })
}

#[tokio::test(start_paused = true)]
async fn a_stop_drains_running_and_buffered_tasks() {
    let pool = pool(1, 3);
    let (sender, mut seen) = mpsc::unbounded_channel();
    for number in 0..4 {
        let sender = sender.clone();
        let make = move |context: Cancellation| async move {
            sleep(Duration::from_secs(10)).await;
            sender.send((number, context.is_cancelled())).unwrap();
        };
        drop(pool.dispatch_with(make, DispatchOptions::default()).unwrap());
    }
    let before = Instant::now();
    let report = pool.stop(DEADLINE).await;
    assert_eq!(report.to_string(), "4 drained, 0 cancelled, 0 aborted");
    assert_eq!(before.elapsed().as_secs(), 40, "it ends with the last task, not at its deadline");
    for number in 0..4 {
        assert_eq!(seen.recv().await, Some((number, false)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_cancels_before_its_deadline_and_aborts_at_it() {
    let (pool, mut gate) = (pool(2, 2), Gate::new());
    // One that reacts, one that does not, one that never gets a slot.
    let listens = pool
        .dispatch_with(
            |context| async move { (context.cancelled().await.clone(), Instant::now()) },
            DispatchOptions::default(),
        )
        .unwrap();
    let (on_drop, dropped) = OnDrop::new();
    let deaf = gate.task(1);
    let deaf = pool
        .dispatch(async move {
            let _on_drop = on_drop;
            deaf.await
        })
        .unwrap();
    let unstarted = pool.dispatch(gate.task(2)).unwrap();
    let blocked = pool.dispatch(gate.task(3)).unwrap();
    gate.started().await;

    let before = Instant::now();
    let report = pool.stop(DEADLINE).await;
    assert_eq!(report, StopReport { drained: 0, cancelled: 3, aborted: 1 });
    assert_eq!(before.elapsed().as_secs(), 100);
    let (reason, cancelled_at) = listens.await.unwrap();
    assert_eq!(reason, CancelReason::Shutdown);
    assert_eq!((cancelled_at - before).as_secs(), 90);
    assert_eq!(deaf.await, Err(JoinError::Aborted));
    assert_eq!((unstarted.await, blocked.await), (Err(JoinError::Aborted), Err(JoinError::Aborted)));
    dropped.await.unwrap();
    let gauges = pool.gauges();
    assert_eq!((gauges.running, gauges.buffered, gauges.idle, gauges.consumers), (0, 0, 2, 0));
    assert_eq!(gauges.accepted, gauges.completed + gauges.aborted);
}

#[tokio::test(start_paused = true)]
async fn dispatch_during_and_after_a_stop_is_refused_and_never_panics() {
    let (pool, gate) = (pool(1, 5), Gate::new());
    let running = pool.dispatch(gate.task(0)).unwrap();
    let stopping = stop(&pool, DEADLINE);
    tokio::task::yield_now().await;
    assert!(matches!(pool.dispatch(async {}), Err(Rejected::Closed(_))));
    let made = pool.dispatch_with(|_| async {}, DispatchOptions::default());
    assert!(matches!(made, Err(Rejected::Closed(_))));
    assert!(matches!(pool.dispatch_wait(async {}, DEADLINE).await, Err(Rejected::Closed(_))));
    gate.let_go(1);
    assert_eq!(running.await, Ok(0));
    stopping.await.unwrap();
    let Err(refused) = pool.dispatch(async { 1 }) else { panic!("the pool has stopped") };
    assert_eq!(refused.into_task().await, 1);
    assert_eq!(pool.gauges().rejected, 0, "closed is not full");
}

#[tokio::test(start_paused = true)]
async fn all_callers_of_a_stop_get_the_same_report() {
    let (pool, gate) = (pool(2, 2), Gate::new());
    for number in 0..3 {
        drop(pool.dispatch(gate.task(number)).unwrap());
    }
    let stops: Vec<_> = (0..3).map(|_| stop(&pool, DEADLINE)).collect();
    sleep(Duration::from_secs(1)).await;
    assert!(stops.iter().all(|stop| !stop.is_finished()));
    gate.let_go(3);
    for stop in stops {
        assert_eq!(stop.await.unwrap(), StopReport { drained: 3, cancelled: 0, aborted: 0 });
    }
    assert_eq!(pool.stop(DEADLINE).await.drained, 3, "also one that comes later");
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_with_an_earlier_deadline_shortens_the_first() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    drop(pool.dispatch(gate.task(0)).unwrap());
    let before = Instant::now();
    let first = stop(&pool, DEADLINE);
    sleep(Duration::from_secs(1)).await;
    let second = stop(&pool, Duration::from_secs(10));
    let third = stop(&pool, Duration::from_secs(1_000));
    assert_eq!(first.await.unwrap().aborted, 1);
    assert_eq!(before.elapsed().as_secs(), 11);
    assert_eq!((second.await.unwrap().aborted, third.await.unwrap().aborted), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_continues_after_its_first_caller_is_dropped() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    drop(pool.dispatch(gate.task(0)).unwrap());
    let first = stop(&pool, DEADLINE);
    sleep(Duration::from_secs(1)).await;
    first.abort();
    let _ = first.await;
    let before = Instant::now();
    assert_eq!(pool.stop(Duration::MAX).await.aborted, 1);
    assert_eq!(before.elapsed().as_secs(), 99);
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_time_aborts_at_once() {
    let (pool, mut gate) = (pool(1, 1), Gate::new());
    let handles = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    gate.started().await;
    let before = Instant::now();
    let report = pool.stop(Duration::ZERO).await;
    assert_eq!(report.cancelled + report.aborted, 2);
    assert_eq!(before.elapsed(), Duration::ZERO);
    for handle in handles {
        assert_eq!(handle.await, Err(JoinError::Aborted));
    }
}

#[tokio::test]
async fn an_idle_pool_stops_at_once_with_an_empty_report() {
    let pool = pool(4, 4);
    pool.dispatch(async {}).unwrap().await.unwrap();
    assert_eq!(pool.stop(DEADLINE).await, StopReport::default());
    assert_eq!(pool.gauges().consumers, 0, "every consumer has ended");
}

#[tokio::test(start_paused = true)]
async fn panics_and_timeouts_in_the_drain_count_as_drained() {
    let (pool, gate) = (pool(3, 1), Gate::new());
    let fails = gate.task(0);
    drop(pool.dispatch(async move { assert_eq!(fails.await, 1, "it fails") }).unwrap());
    let endless = |_| std::future::pending::<()>();
    drop(pool.dispatch_with(endless, DispatchOptions::within(Duration::from_secs(5))).unwrap());
    let stopping = stop(&pool, DEADLINE);
    tokio::task::yield_now().await;
    gate.let_go(1);
    assert_eq!(stopping.await.unwrap(), StopReport { drained: 2, cancelled: 0, aborted: 0 });
    assert_eq!((pool.gauges().panicked, pool.gauges().deadline_exceeded), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_blocks_its_thread_does_not_hold_up_a_stop() {
    let pool = pool(1, 1);
    let (started, has_started) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let handle = pool
        .dispatch(async move {
            started.send(()).unwrap();
            let _ = released.recv();
        })
        .unwrap();
    has_started.await.unwrap();
    assert_eq!(pool.stop(Duration::from_millis(10)).await.aborted, 1);
    assert_eq!(pool.gauges().running, 1, "it still runs, and is counted");
    release.send(()).unwrap();
    // Its poll ran to its end, so there is a result.
    handle.await.unwrap();
}
