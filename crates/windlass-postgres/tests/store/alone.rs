//! A lone enqueue, begun by its caller. It is written even if the caller stops, and no other caller waits for
//! it.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use windlass_core::Store;

use crate::{
    place::{Place, count, tasks},
    wait::until,
};

#[tokio::test]
async fn a_caller_that_stops_polling_delays_no_other_caller() {
    let place = Place::new();
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    let mut first = pin!(store.enqueue(tasks("a", 1)));
    let seen = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    // The first call is on its way, unless the server was very quick. It is not polled again until these have
    // ended.
    for _ in 0..3 {
        store.enqueue(tasks("a", 1)).await.unwrap();
    }
    let first = match seen {
        Poll::Ready(answer) => answer,
        Poll::Pending => first.await,
    };
    assert_eq!(first.unwrap().len(), 1);
    assert_eq!(count(&*store).await, 5);
}

#[tokio::test]
async fn a_caller_needs_neither_clock_nor_sockets_of_its_own() {
    let place = Place::new();
    let store = place.make().await;
    let bare = std::thread::spawn({
        let store = store.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(store.enqueue(tasks("a", 1))).unwrap();
        }
    });
    tokio::task::spawn_blocking(|| bare.join().unwrap()).await.unwrap();
    assert_eq!(count(&*store).await, 1);
}

#[tokio::test]
async fn an_enqueue_is_written_though_its_callers_runtime_ends() {
    let place = Place::new();
    let store = place.make().await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    let ended = std::thread::spawn({
        let store = store.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut call = pin!(store.enqueue(tasks("a", 1)));
                let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            });
        }
    });
    tokio::task::spawn_blocking(|| ended.join().unwrap()).await.unwrap();
    until("the task is listed", async || count(&*store).await == 2).await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    assert_eq!(count(&*store).await, 3);
}
