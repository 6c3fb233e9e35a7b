use windlass_core::{Demand, Source, Store};

use crate::rig::{Rig, task};

/// SQLite syncs only commits that write something.
#[tokio::test]
async fn a_flush_writes_so_that_it_is_synced() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let worker = rig.worker().await;
    let log = rig.folder.path().join("w.db-wal");
    let written = || std::fs::metadata(&log).unwrap().len();
    let lanes = rig.store.lanes(&[task("a").kind], &[]).await.unwrap();
    let demand = Demand::new(worker, 1, lanes.iter().map(|lane| lane.id).collect(), 1);
    for _ in 0..3 {
        let (_, _, safe) = rig.store.enqueue_for(task("a"), &demand).await.unwrap();
        let before = written();
        safe.wait().await.unwrap();
        assert!(written() > before);
    }
    rig.store.close().await.unwrap();
}
