use windlass_core::Store;

use crate::rig::Rig;

/// SQLite syncs the commits that write something, and only those.
#[tokio::test]
async fn a_flush_writes_so_that_it_is_synced() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let log = rig.folder.path().join("w.db-wal");
    let written = || std::fs::metadata(&log).unwrap().len();
    for _ in 0..3 {
        let before = written();
        rig.store.flush().await.unwrap();
        assert!(written() > before);
    }
    rig.store.close().await.unwrap();
    assert_eq!(rig.store.flush().await.unwrap_err().code(), "unknown_outcome", "nobody says that it is safe");
}
