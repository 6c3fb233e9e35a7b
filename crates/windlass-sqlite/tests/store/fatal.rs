use rusqlite::Connection;
use windlass_core::{Error, Source, Store, WorkerReport};

use crate::rig::{DONE, Rig};

#[tokio::test]
async fn a_file_changed_by_another_program_fails_the_store() {
    let rig = Rig::new().await;
    rig.add(2).await;
    let worker = rig.worker().await;
    let claimed = rig.claim(worker, 2).await.tasks;
    let fatal = rig.store.fatal();
    Connection::open(rig.path()).unwrap().execute("DELETE FROM task", []).unwrap();
    let error = rig.store.settle(rig.batch(worker, &claimed, &DONE).into()).await.unwrap_err();
    assert!(matches!(error, Error::Fatal(_)), "{error}");
    assert!(fatal.await.contains("running"), "the reason is told");
    assert_eq!(rig.store.enqueue(vec![crate::rig::task("a")]).await.unwrap_err().code(), "store_failed");
    assert_eq!(rig.store.renew(worker, WorkerReport::default()).await.unwrap_err().code(), "store_failed");
    assert!(rig.store.close().await.is_err());
}

#[tokio::test]
async fn an_audit_finds_what_breaks_a_promise() {
    let rig = Rig::new().await;
    let ids = rig.add(3).await;
    let worker = rig.worker().await;
    rig.claim(worker, 1).await;
    assert_eq!(rig.store.audit().await.unwrap(), []);
    let foreign = Connection::open(rig.path()).unwrap();
    foreign.execute("UPDATE worker SET ended_at = 1", []).unwrap();
    foreign.execute("UPDATE task SET state = 0 WHERE id = ?1", [ids[1].raw()]).unwrap();
    foreign.execute("UPDATE task SET attempt = 11 WHERE id = ?1", [ids[2].raw()]).unwrap();
    let mut findings = rig.store.audit().await.unwrap();
    findings.sort_by_key(|finding| finding.task);
    let found: Vec<_> = findings.iter().map(|finding| (finding.task, finding.promise.as_str())).collect();
    assert_eq!(
        found,
        [(Some(ids[0]), "SLOT-BALANCED"), (Some(ids[1]), "NO-STRANDED"), (Some(ids[2]), "ATTEMPT-BOUND")]
    );
}
