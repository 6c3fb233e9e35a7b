//! S7: a caller can create any number of job names. Each is a row until the job is removed. Lists must still
//! be pages, claims must keep their order, and the store must stay sound. `WINDLASS_LONG=1` creates a
//! million.

use windlass_conformance::Harness;
use windlass_core::{Demand, Name, NewTask, NewWorker, Payload, Rules, store::PAGE_MAX};
use windlass_sqlite::Durability;

use crate::{harness::Remote, sqlite::support::SqliteHarness};

const BATCH: usize = 10_000;
/// Turns that one duty may give.
const TURNS: u32 = 10_000;

#[tokio::test]
async fn many_job_names_leave_pages_claims_and_audit_working() {
    let names = if std::env::var_os("WINDLASS_LONG").is_some() { 1_000_000 } else { 2_000 };
    let harness = Remote::new(SqliteHarness::new(Durability::Normal));
    let store = harness.open(Rules::default()).await;
    let name = |text: String| Name::new("job", text).unwrap();
    let worker = NewWorker {
        host: String::new(),
        pid: 0,
        version: String::new(),
        kinds: vec![name("a".to_owned())],
        queues: Vec::new(),
        slots: 100,
        lease_ttl: std::time::Duration::from_mins(10),
    };
    let worker = store.register(worker).await.unwrap();
    for first in (0..names).step_by(BATCH) {
        let task = |n: usize| NewTask {
            job: Some(name(format!("job-{n:07}"))),
            ..NewTask::new("a", Payload::bytes(*b"x")).unwrap()
        };
        let tasks = (first..names.min(first + BATCH)).map(task).collect();
        store.enqueue(tasks).await.unwrap();
    }
    let page = store.gates().jobs(None, u32::MAX).await;
    let page = page.map_or_else(|_| PAGE_MAX as usize, |page| page.len());
    assert!(page <= PAGE_MAX as usize, "{page} jobs in one answer");
    let last = name(format!("job-{:07}", names - 1));
    // One call gives a bounded number of turns. Workers ask for the rest.
    while store.admit(TURNS).await.unwrap().more {}
    let job = store.gates().job(&last).await.unwrap().unwrap();
    assert_eq!((job.ready, job.running, job.held), (1, 0, 0));
    let lanes = store.lanes(&[name("a".to_owned())], &[]).await.unwrap();
    let demand = Demand::new(worker, 1, lanes.iter().map(|lane| lane.id).collect(), 100);
    let claimed = store.claim(&[demand]).await.unwrap().tasks;
    let first: Vec<_> = claimed.iter().take(3).map(|task| task.job.clone().unwrap().to_string()).collect();
    assert_eq!(
        (claimed.len(), first),
        (100, ["job-0000000", "job-0000001", "job-0000002"].map(str::to_owned).to_vec())
    );
    assert_eq!(store.audit().await.unwrap(), []);
}
