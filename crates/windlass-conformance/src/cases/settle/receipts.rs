//! Receipts: a caller that did not get an answer sends the same batch again and gets the first answer.

use std::{sync::Arc, time::Duration};

use windlass_core::{Outcome, State};

use crate::{
    cases::rig::{MANY, Rig, task},
    harness::Harness,
};

pub async fn a_batch_sent_again_gets_its_first_answer(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let ids = rig.add_many("a", 3).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(3).await;
    let mut stale = tasks[2].clone();
    stale.lease += 7;
    let ends = vec![
        (tasks[0].clone(), Outcome::Done(None)),
        (tasks[1].clone(), Outcome::retry_after(Duration::from_secs(1), "x")),
        (stale, Outcome::Done(None)),
    ];
    let batch = Arc::new(worker.batch(ends).await);
    let first = rig.store.settle(Arc::clone(&batch)).await.unwrap();
    let before = rig.all().await;
    for _ in 0..3 {
        let again = rig.store.settle(Arc::clone(&batch)).await.unwrap();
        assert_eq!((first.replayed, again.replayed), (false, true));
        assert_eq!((&first.fenced, &again.fenced), (&vec![ids[2]], &vec![ids[2]]));
        assert_eq!(rig.all().await, before, "it is applied once");
    }
}

pub async fn a_batch_sent_again_does_not_touch_a_later_attempt(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let id = rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim_one().await;
    let batch = Arc::new(worker.batch(vec![(claimed, Outcome::Release)]).await);
    rig.store.settle(Arc::clone(&batch)).await.unwrap();
    let current = worker.claim_one().await;
    let again = rig.store.settle(batch).await.unwrap();
    assert!(again.replayed && again.fenced.is_empty());
    assert_eq!(rig.state(id).await, State::Running);
    worker.end(&current, Outcome::Done(None)).await;
}

pub async fn settlers_and_workers_number_their_own_batches(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 4).await;
    let (mut first, mut second) = (rig.worker().await, rig.worker().await);
    let mut left = first.claim(2).await;
    left.extend(second.claim(2).await);
    let settlers = [(first.id, 0), (first.id, 1), (second.id, 0), (second.id, 1)];
    for ((worker, settler_no), task) in settlers.into_iter().zip(left) {
        let items = vec![windlass_core::SettleItem::new(
            &task,
            windlass_core::Settlement::Done { output: None, note: None },
        )];
        let batch = windlass_core::SettleBatch { worker, settler_no, batch_no: 1, items };
        let settled = rig.store.settle(Arc::new(batch)).await.unwrap();
        assert!(!settled.replayed && settled.fenced.is_empty(), "{worker} {settler_no}");
    }
}

pub async fn a_swept_workers_receipt_is_still_there(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let tasks = worker.claim(MANY).await;
    let batch = Arc::new(worker.batch(vec![(tasks[0].clone(), Outcome::Done(None))]).await);
    rig.store.settle(Arc::clone(&batch)).await.unwrap();
    rig.advance(Duration::from_mins(5)).await;
    assert_eq!(rig.sweep().await, 1);
    let again = rig.store.settle(batch).await.unwrap();
    assert!(again.replayed && again.fenced.is_empty(), "{again:?}");
}
