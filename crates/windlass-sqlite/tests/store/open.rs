use windlass_core::{Source, State, Store};
use windlass_sqlite::{Location, OpenError, Options, SqliteStore};

use crate::rig::{Rig, START};

#[tokio::test]
async fn a_second_opener_learns_pid_and_address_of_the_first() {
    let rig = Rig::with(|options| options.address("127.0.0.1:1")).await;
    for address in ["127.0.0.1:1", "127.0.0.1:7878"] {
        rig.store.set_address(address);
        let error = SqliteStore::open(&rig.location(), rig.options.clone()).await.unwrap_err();
        let OpenError::InUse { pid, address: told, .. } = &error else { panic!("{error}") };
        assert_eq!((*pid, told.as_deref()), (Some(std::process::id()), Some(address)));
        assert!(error.to_string().contains(address), "{error}");
    }
}

#[tokio::test]
async fn a_store_can_be_opened_again_once_it_is_closed_or_dropped() {
    let rig = Rig::new().await;
    rig.store.close().await.unwrap();
    let again = SqliteStore::open(&rig.location(), rig.options.clone()).await.unwrap();
    assert!(!again.info().await.unwrap().created);
    drop(again);
    SqliteStore::open(&rig.location(), rig.options.clone()).await.unwrap();
}

/// An older program knows nothing of retired lanes, and adds tasks to them.
#[tokio::test]
async fn a_retired_lane_with_tasks_is_in_use_after_a_restart() {
    let mut rig = Rig::new().await;
    let ids = rig.add(1).await;
    rig.store.close().await.unwrap();
    let conn = rusqlite::Connection::open(rig.path()).unwrap();
    assert_eq!(conn.execute("UPDATE lane SET retired = 1", []), Ok(1));
    drop(conn);
    rig.store = SqliteStore::open(&rig.location(), rig.options.clone()).await.unwrap();
    assert_eq!(rig.finish(1).await, ids);
}

#[tokio::test]
async fn a_closed_store_answers_every_call_with_an_error() {
    let rig = Rig::new().await;
    let id = rig.add(1).await[0];
    rig.store.close().await.unwrap();
    assert_eq!(rig.store.enqueue(vec![crate::rig::task("a")]).await.unwrap_err().code(), "unavailable");
    assert_eq!(rig.store.task(id).await.unwrap_err().code(), "unavailable");
    rig.store.close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "shopping list\n".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    let error = SqliteStore::open(&Location::File(path.clone()), Options::default()).await.unwrap_err();
    assert!(matches!(error, OpenError::NotADatabase(_)), "{error}");
    assert!(!error.to_string().contains('\n'));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_store_that_must_exist_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("w.db"));
    let error = SqliteStore::open(&location, Options::default().existing_only()).await.unwrap_err();
    assert!(matches!(error, OpenError::NoSuchStore(_)), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_folder_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere/w.db");
    let error = SqliteStore::open(&Location::File(path), Options::default()).await.unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains("nowhere"), "{error}");
}

#[tokio::test]
async fn tasks_of_an_ended_process_are_ready_again_with_one_crash() {
    let mut rig = Rig::new().await;
    rig.add(5).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 3).await.tasks;
    rig.reopen().await;
    let info = rig.store.info().await.unwrap();
    assert_eq!((info.recovered, info.created), (3, false));
    for task in &claimed {
        let record = rig.store.task(task.id).await.unwrap().unwrap();
        assert_eq!((record.state, record.crashes, record.attempt), (State::Ready, 1, 0));
    }
    assert_eq!((rig.depth().await.ready, rig.depth().await.running), (5, 0));
    let late = rig.store.settle(rig.batch(worker, &claimed, &crate::rig::DONE).into()).await.unwrap();
    assert_eq!(late.fenced.len(), 3, "the dead worker's results do not count");
    assert_eq!(rig.store.audit().await.unwrap(), []);
    rig.reopen().await;
    assert_eq!(rig.store.info().await.unwrap().recovered, 0);
}

#[tokio::test]
async fn ids_rise_after_a_restart_although_the_clock_went_back() {
    let mut rig = Rig::with(|options| options.history(windlass_sqlite::History::Off)).await;
    let before = rig.add(1).await[0];
    rig.finish(1).await;
    assert!(rig.store.task(before).await.unwrap().is_none());
    rig.clock.jump_wall(START.before(std::time::Duration::from_hours(1)));
    rig.reopen().await;
    assert!(rig.add(1).await[0] > before);
}

#[tokio::test]
async fn a_store_in_memory_does_what_a_file_does() {
    let store = SqliteStore::open(&Location::Memory, Options::default()).await.unwrap();
    let id = store.enqueue(vec![crate::rig::task("a")]).await.unwrap()[0].id;
    assert_eq!(store.task(id).await.unwrap().unwrap().state, State::Ready);
    let info = store.info().await.unwrap();
    assert_eq!((info.backend.as_str(), info.durable, info.created), ("memory", false, true));
    let folder = tempfile::tempdir().unwrap();
    store.backup(&folder.path().join("copy.db")).await.unwrap();
    let copy = Location::File(folder.path().join("copy.db"));
    let copy = SqliteStore::open(&copy, Options::default().existing_only()).await.unwrap();
    assert!(copy.task(id).await.unwrap().is_some());
}
