//! Stores for the tests of the library.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::{sync::Arc, time::Duration};

use windlass::{
    Payload, TaskId,
    store::{Demand, LeaseRef, NewWorker, Rules, SettleBatch, SettleItem, Settlement, SharedStore},
    time::{ManualClock, Timestamp},
};
use windlass_conformance::{MemoryStore, Staged};

pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_ms(1_763_000_000_000)))
}

pub fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(clock(), Rules::default()))
}

/// A store whose enqueues the test can make fail, and that counts the queries for ends of tasks.
pub fn staged() -> Arc<Staged> {
    Arc::new(Staged::new(memory()))
}

/// Acts as a worker that takes one ready task and ends it in success.
pub async fn succeed(store: &SharedStore, id: TaskId, output: Option<Payload>) {
    let task = store.task(id).await.unwrap().unwrap();
    let kinds = vec![task.lane.kind.clone()];
    let worker = store
        .register(NewWorker {
            host: "test".into(),
            pid: 1,
            version: "0".into(),
            kinds: kinds.clone(),
            queues: Vec::new(),
            slots: 1,
            lease_ttl: Duration::from_secs(10),
        })
        .await
        .unwrap();
    let lanes = store.lanes(&kinds, &[]).await.unwrap().iter().map(|lane| lane.id).collect();
    let claimed = store.claim(&[Demand::new(worker, 1, lanes, 1)]).await.unwrap().tasks;
    assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), [id]);
    let lease = LeaseRef { id, lease: claimed[0].lease };
    let items = vec![SettleItem {
        lease,
        settlement: Settlement::Done { output, note: None },
        gate: windlass_core::Gate::default(),
    }];
    let batch = SettleBatch { worker, settler_no: 0, batch_no: 1, items };
    assert!(store.settle(Arc::new(batch)).await.unwrap().fenced.is_empty());
}
