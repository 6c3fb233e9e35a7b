use std::time::Duration;

use windlass_core::{NewTask, Payload, Source, Store, store::Retention};

use crate::rig::{Rig, task};

async fn retain(rig: &Rig, retention: &Retention) -> u64 {
    let mut moved = 0;
    loop {
        let report = rig.store.retain(retention).await.unwrap();
        moved += report.moved;
        if !report.more {
            return moved;
        }
    }
}

#[tokio::test]
async fn the_oldest_kept_tasks_go_until_the_rest_fits() {
    let rig = Rig::new().await;
    let ids = rig.add_tasks(vec![NewTask { payload: Payload::bytes(vec![7; 900]), ..task("a") }; 100]).await;
    rig.finish(100).await;
    assert_eq!(rig.store.info().await.unwrap().history_bytes, 100_000);
    let retention = Retention { history_max_bytes: 30_500, ..Retention::default() };
    assert_eq!(retain(&rig, &retention).await, 70);
    let info = rig.store.info().await.unwrap();
    assert_eq!((info.history_rows, info.history_bytes), (30, 30_000));
    assert!(rig.store.task(ids[69]).await.unwrap().is_none());
    assert!(rig.store.task(ids[70]).await.unwrap().is_some());
}

#[tokio::test]
async fn figures_of_the_history_survive_a_restart() {
    let mut rig = Rig::new().await;
    rig.add(10).await;
    rig.finish(4).await;
    let before = rig.store.info().await.unwrap();
    rig.reopen().await;
    let after = rig.store.info().await.unwrap();
    assert_eq!((after.history_rows, after.history_bytes), (4, before.history_bytes));
}

#[tokio::test]
async fn space_is_given_back_and_the_log_stays_small() {
    let rig = Rig::new().await;
    let large = NewTask { payload: Payload::bytes(vec![7; 20_000]), ..task("a") };
    for _ in 0..6 {
        rig.add_tasks(vec![large.clone(); 500]).await;
        rig.finish(500).await;
    }
    let full = rig.store.info().await.unwrap();
    assert!(full.bytes > 60_000_000, "{}", full.bytes);
    assert!(full.wal_bytes < 48 << 20, "{}", full.wal_bytes);
    let retention = Retention { history_age: Duration::ZERO, ..Retention::default() };
    assert_eq!(retain(&rig, &retention).await, 3000);
    let empty = rig.store.info().await.unwrap();
    assert_eq!((empty.history_rows, empty.history_bytes), (0, 0));
    rig.store.close().await.unwrap();
    let bytes = std::fs::metadata(rig.path()).unwrap().len();
    assert!(bytes < 8 << 20, "{bytes}");
}

#[tokio::test]
async fn tombstones_of_workers_go_after_a_day_with_their_receipts() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 1).await.tasks;
    rig.settle(worker, &claimed, &crate::rig::DONE).await;
    rig.store.retire(worker).await.unwrap();
    rig.clock.advance(Duration::from_hours(23));
    retain(&rig, &Retention::default()).await;
    assert_eq!(rig.store.workers().await.unwrap().len(), 1);
    rig.clock.advance(Duration::from_hours(1));
    retain(&rig, &Retention::default()).await;
    assert_eq!(rig.store.workers().await.unwrap(), []);
    let conn = rusqlite::Connection::open(rig.path()).unwrap();
    let receipts: i64 = conn.query_row("SELECT count(*) FROM receipt", [], |row| row.get(0)).unwrap();
    assert_eq!(receipts, 0);
}
