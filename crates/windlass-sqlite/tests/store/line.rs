//! The lines before jobs: their order in every way of reading, and after a restart.

use std::time::Duration;

use rusqlite::Connection;
use windlass_core::{
    Gates, JobChange, NewTask, NewWorker, Rules, Settlement, Source, Store, TaskId, WorkerId,
};

use crate::rig::{DONE, Rig, name, task};

async fn one_at_a_time() -> Rig {
    let rules = Rules { job_default_concurrency: Some(1), ..Rules::default() };
    Rig::with(|options| options.rules(rules)).await
}

async fn serving(rig: &Rig) -> WorkerId {
    let worker = NewWorker {
        host: "here".into(),
        pid: 1,
        version: "1".into(),
        kinds: vec![name("a")],
        queues: Vec::new(),
        slots: 10,
        lease_ttl: Duration::from_secs(10),
    };
    rig.store.register(worker).await.unwrap()
}

async fn add(rig: &Rig, n: usize, priority: i32) -> Vec<TaskId> {
    let task = NewTask { job: Some(name("j")), priority, ..task("a") };
    rig.add_tasks(vec![task; n]).await
}

/// Claims and settles so many tasks, one after the other.
async fn run(rig: &Rig, worker: WorkerId, n: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..n {
        let claimed = rig.claim(worker, 10).await.tasks;
        assert_eq!(claimed.len(), 1, "one at a time");
        rig.settle(worker, &claimed, &DONE).await;
        ids.extend(claimed.iter().map(|task| task.id));
        assert_eq!(rig.store.audit().await.unwrap(), []);
    }
    ids
}

fn length(rig: &Rig) -> i64 {
    let file = Connection::open(rig.path()).unwrap();
    file.query_row("SELECT count(*) FROM held", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_line_is_read_in_parts_and_deleted_when_it_is_empty() {
    let rig = one_at_a_time().await;
    let worker = serving(&rig).await;
    let ids = add(&rig, 250, 0).await;
    assert_eq!(run(&rig, worker, 150).await, ids[..150]);
    assert!((100..250).contains(&length(&rig)), "{} are still there", length(&rig));
    assert_eq!(run(&rig, worker, 100).await, ids[150..]);
    assert_eq!(length(&rig), 0);
}

#[tokio::test]
async fn a_restart_reads_on_where_the_line_was_left() {
    let mut rig = one_at_a_time().await;
    let worker = serving(&rig).await;
    let ids = add(&rig, 100, 0).await;
    run(&rig, worker, 10).await;
    rig.claim(worker, 1).await;
    rig.reopen().await;
    assert_eq!(length(&rig), 90, "admitted tasks are gone, running ones are back");
    let worker = serving(&rig).await;
    let mut rest = run(&rig, worker, 90).await;
    rest.sort_unstable();
    assert_eq!(rest, ids[10..]);
    assert_eq!(length(&rig), 0);
}

#[tokio::test]
async fn later_tasks_of_a_higher_priority_are_first() {
    let rig = one_at_a_time().await;
    let worker = serving(&rig).await;
    let low = add(&rig, 50, 0).await;
    assert_eq!(run(&rig, worker, 3).await, low[..3]);
    let mut expected = Vec::new();
    for priority in 1..=3 {
        expected.splice(0..0, add(&rig, 70, priority).await);
    }
    expected.extend(&low[3..]);
    assert_eq!(run(&rig, worker, expected.len()).await, expected);
    assert_eq!(length(&rig), 0);
}

#[tokio::test]
async fn cancelled_and_returned_tasks_leave_the_line_intact() {
    let rig = one_at_a_time().await;
    let worker = serving(&rig).await;
    let ids = add(&rig, 80, 0).await;
    run(&rig, worker, 5).await;
    rig.store.cancel(&[ids[6], ids[70]], "no").await.unwrap();
    let claimed = rig.claim(worker, 1).await.tasks;
    rig.settle(worker, &claimed, &Settlement::Release).await;
    let pause = |limit| JobChange { concurrency: Some(Some(limit)), ..JobChange::default() };
    rig.store.set_job(&name("j"), &pause(0)).await.unwrap();
    rig.store.set_job(&name("j"), &pause(1)).await.unwrap();
    let expected: Vec<TaskId> =
        ids[5..].iter().copied().filter(|id| ![ids[6], ids[70]].contains(id)).collect();
    assert_eq!(run(&rig, worker, expected.len()).await, expected);
    assert_eq!(length(&rig), 0);
}
