use windlass_core::{Source, Store};

use crate::rig::{DONE, Rig, task};

#[tokio::test]
async fn on_a_full_disk_only_enqueue_is_refused() {
    let mut rig = Rig::new().await;
    let ids = rig.add(10).await;
    // The reserve is larger than any disk.
    rig.options = rig.options.clone().min_free(u64::MAX, 0);
    rig.reopen().await;
    let error = rig.store.enqueue(vec![task("a")]).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), ("store_full", true));
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 9).await.tasks;
    assert!(rig.settle(worker, &claimed, &DONE).await.fenced.is_empty());
    rig.store.cancel(&ids[9..], "x").await.unwrap();
    rig.store.retire(worker).await.unwrap();
    assert_eq!(rig.store.info().await.unwrap().history_rows, 10);
}

#[tokio::test]
async fn the_reserve_may_be_a_share_of_the_disk() {
    let rig = Rig::with(|options| options.min_free(0, 100)).await;
    assert_eq!(rig.store.enqueue(vec![task("a")]).await.unwrap_err().code(), "store_full");
}
