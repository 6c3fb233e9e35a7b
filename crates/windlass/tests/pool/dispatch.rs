//! Adding tasks.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Waker,
    time::Duration,
};

use tokio::sync::oneshot;
use windlass::{
    Rejected,
    pool::{DispatchOptions, JoinError},
};

use crate::{Gate, pool};

#[tokio::test]
async fn a_dispatched_task_answers_with_its_result() {
    let pool = pool(2, 2);
    assert_eq!(pool.dispatch(async { 6 * 7 }).unwrap().await, Ok(42));
}

#[tokio::test]
async fn a_full_pool_returns_the_task() {
    let (pool, mut gate) = (pool(2, 1), Gate::new());
    let accepted: Vec<_> = (0..3).map(|number| pool.dispatch(gate.task(number)).unwrap()).collect();
    // No task has run yet: what is accepted depends on the sizes alone.
    let Err(Rejected::Full(task)) = pool.dispatch(gate.task(3)) else { panic!("the pool was full") };

    assert_eq!((gate.started().await, gate.started().await), (0, 1));
    let gauges = pool.gauges();
    assert_eq!((gauges.running, gauges.buffered, gauges.idle, gauges.rejected), (2, 1, 0, 1));

    gate.let_go(4);
    for (number, handle) in accepted.into_iter().enumerate() {
        assert_eq!(handle.await, Ok(number));
    }
    // The returned task is the task itself.
    assert_eq!(pool.dispatch(task).unwrap().await, Ok(3));
}

#[tokio::test]
async fn a_refused_function_is_returned_uncalled() {
    let (pool, gate) = (pool(1, 1), Gate::new());
    let _handles = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    let calls = Arc::new(AtomicUsize::new(0));
    let make = {
        let calls = calls.clone();
        move |_| {
            calls.fetch_add(1, SeqCst);
            std::future::ready(())
        }
    };
    let Err(Rejected::Full(make)) = pool.dispatch_with(make, DispatchOptions::default()) else {
        panic!("it was full")
    };
    assert_eq!(calls.load(SeqCst), 0);
    gate.let_go(2);
    let again = pool.dispatch_wait(async {}, Duration::from_mins(1)).await.unwrap();
    again.await.unwrap();
    pool.dispatch_with(make, DispatchOptions::default()).unwrap().await.unwrap();
    assert_eq!(calls.load(SeqCst), 1);
}

#[tokio::test]
async fn a_pool_of_one_slot_keeps_the_order() {
    let pool = pool(1, 100);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut handles = Vec::new();
    for number in 0..100 {
        let order = order.clone();
        let task = async move {
            tokio::task::yield_now().await;
            order.lock().unwrap().push(number);
        };
        handles.push(pool.dispatch(task).unwrap());
    }
    for handle in handles {
        handle.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_producers_share_the_slots_and_every_task_runs_once() {
    const PRODUCERS: usize = 8;
    const TASKS: usize = 500;
    const SIZE: usize = 3;
    let pool = pool(SIZE, 10);
    let (inside, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let (pool, inside, ran) = (pool.clone(), inside.clone(), ran.clone());
            tokio::spawn(async move {
                let mut handles = Vec::new();
                for number in 0..TASKS {
                    let (inside, ran) = (inside.clone(), ran.clone());
                    let task = async move {
                        assert!(inside.fetch_add(1, SeqCst) < SIZE, "more tasks run than there are slots");
                        if number.is_multiple_of(3) {
                            tokio::task::yield_now().await;
                        }
                        inside.fetch_sub(1, SeqCst);
                        ran.fetch_add(1, SeqCst);
                    };
                    handles.push(pool.dispatch_wait(task, Duration::MAX).await.unwrap());
                }
                for handle in handles {
                    handle.await.unwrap();
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    assert_eq!(ran.load(SeqCst), PRODUCERS * TASKS);
    let report = pool.stop(Duration::from_mins(1)).await;
    assert_eq!(report.aborted + report.cancelled, 0);
    let gauges = pool.gauges();
    assert_eq!((gauges.completed, gauges.accepted), ((PRODUCERS * TASKS) as u64, (PRODUCERS * TASKS) as u64));
    assert_eq!((gauges.running, gauges.reserved, gauges.idle), (0, 0, SIZE));
}

#[test]
fn tasks_can_be_handed_in_from_a_thread_without_a_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let pool = windlass::Pool::builder().runtime(runtime.handle().clone()).build().unwrap();
    let handle = std::thread::spawn(move || pool.dispatch(async { 1 }).unwrap());
    let handle = handle.join().unwrap();
    // The pool was dropped with its thread, so the task has either ended or been aborted; it does not hang.
    assert!(matches!(runtime.block_on(handle), Ok(1) | Err(JoinError::Aborted)));
}

#[tokio::test]
async fn a_stale_waker_does_not_keep_consumers_from_being_called() {
    let (pool, mut gate) = (pool(2, 10), Gate::new());
    let (sender, receiver) = oneshot::channel::<Waker>();
    let mut sender = Some(sender);
    let leaves_its_waker = std::future::poll_fn(move |cx| {
        sender.take().unwrap().send(cx.waker().clone()).unwrap();
        std::task::Poll::Ready(())
    });
    pool.dispatch(leaves_its_waker).unwrap().await.unwrap();
    let waker = receiver.await.unwrap();
    // Wakes the parked consumer although the pool has not called it.
    waker.wake_by_ref();
    tokio::task::yield_now().await;
    // If it counted as two parked consumers now, the second task would wait for the first.
    let handles = [pool.dispatch(gate.task(0)).unwrap(), pool.dispatch(gate.task(1)).unwrap()];
    assert_eq!((gate.started().await, gate.started().await), (0, 1));
    gate.let_go(2);
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.await, Ok(number));
    }
}

#[tokio::test]
async fn tasks_that_are_ready_at_once_yield_in_between() {
    let pool = pool(1, 10_000);
    let mut handles: Vec<_> = (0..10_000).map(|_| pool.dispatch(async {}).unwrap()).collect();
    // There is one thread: if the pool ran all tasks without yielding, all would be over after the first
    // yield.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert!(pool.gauges().buffered > 0);
    handles.pop().unwrap().await.unwrap();
    assert_eq!(pool.gauges().completed, 10_000);
}

#[tokio::test]
async fn long_tasks_after_short_ones_do_not_delay_the_next() {
    let (pool, mut gate) = (pool(8, 1_000), Gate::new());
    let short: Vec<_> = (0..1_000).map(|_| pool.dispatch(async {}).unwrap()).collect();
    for handle in short {
        handle.await.unwrap();
    }
    let long: Vec<_> = (0..8).map(|number| pool.dispatch(gate.task(number)).unwrap()).collect();
    for _ in 0..8 {
        gate.started().await;
    }
    gate.let_go(8);
    for handle in long {
        handle.await.unwrap();
    }
}

#[tokio::test]
async fn surplus_consumers_end_after_a_burst() {
    const BURST: usize = 3_000;
    let (pool, mut gate) = (pool(BURST, 1), Gate::new());
    let handles: Vec<_> = (0..BURST).map(|number| pool.dispatch(gate.task(number)).unwrap()).collect();
    for _ in 0..BURST {
        gate.started().await;
    }
    assert_eq!(pool.gauges().consumers, BURST);
    gate.let_go(BURST);
    for handle in handles {
        handle.await.unwrap();
    }
    assert!(pool.gauges().consumers <= 1024, "{}", pool.gauges().consumers);
}
