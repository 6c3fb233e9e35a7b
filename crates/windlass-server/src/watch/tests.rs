//! How often the store is asked.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};
use windlass_conformance::MemoryStore;
use windlass_core::{Rules, Timestamp, time::ManualClock};

use super::*;
use crate::Operations;

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), Rules::default()))
}

/// Calls of one look that a snapshot needs.
const WHOLE: u64 = 7;
/// Calls of one look that the history needs.
const FIGURES: u64 = 3;

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_cost_as_much_as_one() {
    let (one, hundred) = (store(), store());
    for (store, callers) in [(&one, 1), (&hundred, 100)] {
        let operations = Operations::new(store.clone());
        let mut viewers = JoinSet::new();
        for _ in 0..callers {
            let operations = operations.clone();
            viewers.spawn(async move {
                let mut number = 0;
                for _ in 0..10 {
                    operations.snapshot().await;
                    (number, _) = operations.event_after(number).await;
                }
            });
        }
        while viewers.join_next().await.is_some() {}
    }
    assert_eq!((one.calls(), hundred.calls()), (10 * WHOLE, 10 * WHOLE));
}

#[tokio::test(start_paused = true)]
async fn without_callers_the_store_is_not_asked() {
    let store = store();
    let operations = Operations::new(store.clone());
    operations.snapshot().await;
    let before = store.calls();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(store.calls(), before);
}

#[tokio::test(start_paused = true)]
async fn the_recorder_looks_every_five_seconds_if_no_caller_does() {
    let store = store();
    let operations = Operations::new(store.clone());
    let recorder = operations.clone();
    let recorder = tokio::spawn(async move { recorder.keep_history().await });
    tokio::time::sleep(Duration::from_millis(59_999)).await;
    assert_eq!(store.calls(), 12 * FIGURES);
    assert_eq!(operations.series(None, None).await.points.len(), 12);
    recorder.abort();
}

#[tokio::test(start_paused = true)]
async fn callers_record_the_history_too() {
    let store = store();
    let operations = Operations::new(store.clone());
    let recorder = operations.clone();
    let recorder = tokio::spawn(async move { recorder.keep_history().await });
    let (began, mut number, mut looks) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_mins(1) {
        (number, _) = operations.event_after(number).await;
        looks += 1;
    }
    recorder.abort();
    let points = operations.series(None, None).await.points.len();
    assert!((10..=13).contains(&points), "{points} points in a minute");
    let most = looks * WHOLE + 13 * FIGURES;
    assert!(store.calls() <= most, "{} calls for {looks} looks", store.calls());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_the_newest_snapshot() {
    let operations = Operations::new(store());
    let (first, _) = operations.event_after(0).await;
    let mut number = first;
    for _ in 0..10 {
        (number, _) = operations.event_after(number).await;
    }
    let (slow, event) = operations.event_after(first).await;
    assert_eq!(slow, number, "the nine between are not sent");
    assert!(event.starts_with(b"event: snapshot\nid: 11\ndata: {\"at\":\""), "{event:?}");
    assert!(event.ends_with(b"}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_looks_delays_no_other() {
    let operations = Operations::new(store());
    let gone = operations.clone();
    let gone = tokio::spawn(async move { gone.snapshot().await });
    gone.abort();
    assert!(operations.snapshot().await.store.ok);
}

#[tokio::test]
async fn streams_are_bounded_and_a_place_is_free_again_when_one_ends() {
    let operations = Operations::new(store());
    let mut viewers: Vec<_> = (0..VIEWERS_MAX).map(|_| operations.viewer().unwrap()).collect();
    assert_eq!(operations.viewer().unwrap_err().code, ErrorCode::Unavailable);
    viewers.pop();
    assert!(operations.viewer().is_ok());
}

#[tokio::test]
async fn the_later_audit_is_shown() {
    let operations = Operations::new(store());
    assert_eq!(operations.snapshot().await.audit, None);
    let watch = Watch::default();
    let earlier = LastAudit { findings: 3, at: Timestamp::from_ms(7) };
    assert_eq!(watch.audited(Some(earlier)), Some(earlier));
    watch.note_audit(&Audit::default());
    assert_eq!(watch.audited(Some(earlier)).unwrap().findings, 0);
}
