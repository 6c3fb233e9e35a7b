use windlass_core::{State, Store, task::AttemptResult};
use windlass_sqlite::{OpenError, RestoreOptions, SqliteStore, restore};

use crate::rig::{Rig, name};

#[tokio::test]
async fn a_restored_copy_of_a_running_store_has_no_leases() {
    let rig = Rig::new().await;
    let ids = rig.add(3).await;
    let worker = rig.worker().await;
    rig.claim(worker, 2).await;
    let copy = rig.folder.path().join("copy.db");
    rig.store.backup(&copy).await.unwrap();
    rig.finish(1).await;

    let to = rig.folder.path().join("again.db");
    let restored = restore(&copy, &to, RestoreOptions::default()).unwrap();
    assert_eq!((restored.handed_back, restored.queues_held), (2, 0));
    let location = windlass_sqlite::Location::File(to);
    let again = SqliteStore::open(&location, rig.options.clone().existing_only()).await.unwrap();
    assert_eq!(again.info().await.unwrap().recovered, 0, "a restore is no crash");
    for id in &ids {
        let task = again.task(*id).await.unwrap().unwrap();
        assert_eq!((task.state, task.attempt, task.crashes), (State::Ready, 0, 0));
    }
    let task = again.task(ids[0]).await.unwrap().unwrap();
    assert_eq!((task.lease, task.attempts[0].result), (1, AttemptResult::Released));
    assert_eq!(again.audit().await.unwrap(), []);
}

#[tokio::test]
async fn a_restore_can_leave_every_queue_paused() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let copy = rig.folder.path().join("copy.db");
    rig.store.backup(&copy).await.unwrap();
    let to = rig.folder.path().join("again.db");
    let restored = restore(&copy, &to, RestoreOptions { hold: true, overwrite: false }).unwrap();
    assert_eq!(restored.queues_held, 1);
    let location = windlass_sqlite::Location::File(to);
    let again = SqliteStore::open(&location, rig.options.clone()).await.unwrap();
    assert_eq!(again.paused_queues().await.unwrap(), [name("default")]);
}

#[tokio::test]
async fn a_restore_replaces_a_store_only_if_asked() {
    let rig = Rig::new().await;
    let kept = rig.add(1).await[0];
    let copy = rig.folder.path().join("copy.db");
    rig.store.backup(&copy).await.unwrap();
    let later = rig.add(1).await[0];
    let overwrite = RestoreOptions { hold: false, overwrite: true };
    let error = restore(&copy, &rig.path(), overwrite).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    rig.store.close().await.unwrap();
    let error = restore(&copy, &rig.path(), RestoreOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Exists(_)), "{error}");
    restore(&copy, &rig.path(), overwrite).unwrap();
    let again = SqliteStore::open(&rig.location(), rig.options.clone()).await.unwrap();
    assert!(again.task(kept).await.unwrap().is_some());
    assert!(again.task(later).await.unwrap().is_none());
}

#[tokio::test]
async fn a_copy_replaces_no_file_and_a_broken_copy_is_refused() {
    let rig = Rig::new().await;
    let file = rig.folder.path().join("precious.txt");
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(rig.store.backup(&file).await.unwrap_err().code(), "invalid");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let to = rig.folder.path().join("again.db");
    assert!(matches!(restore(&file, &to, RestoreOptions::default()), Err(OpenError::NotADatabase(_))));
    assert!(!to.exists());
    assert!(matches!(
        restore(&rig.folder.path().join("none"), &to, RestoreOptions::default()),
        Err(OpenError::NoSuchStore(_))
    ));
}
