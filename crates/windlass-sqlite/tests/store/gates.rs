//! Jobs and workflows in the file: restarts, the audit and large numbers.

use std::time::Duration;

use rusqlite::Connection;
use windlass_core::{
    Gates, JobChange, JobState, NewTask, NewWorker, OnFailure, Schedules, Settlement, Source, State, Store,
    TaskId, WorkerId, WorkflowAction, gate::JobRecord, schedule::ScheduleRow, store::Retention,
};
use windlass_sqlite::{Location, RestoreOptions, SqliteStore, restore};

use crate::rig::{DONE, Rig, START, name, task};

fn of_job(job: &str) -> NewTask {
    NewTask { job: Some(name(job)), ..task("a") }
}

fn step(workflow: &str) -> NewTask {
    NewTask { workflow: Some(name(workflow)), ..task("a") }
}

async fn serving(store: &SqliteStore) -> WorkerId {
    let worker = NewWorker {
        host: "here".into(),
        pid: 1,
        version: "1".into(),
        kinds: vec![name("a")],
        queues: Vec::new(),
        slots: 10,
        lease_ttl: Duration::from_secs(10),
    };
    store.register(worker).await.unwrap()
}

async fn limit(rig: &Rig, job: &str, concurrency: u32) -> JobRecord {
    let change = JobChange { concurrency: Some(Some(concurrency)), ..JobChange::default() };
    rig.store.set_job(&name(job), &change).await.unwrap()
}

async fn states(rig: &Rig, ids: &[TaskId]) -> Vec<State> {
    let mut states = Vec::new();
    for id in ids {
        states.push(rig.state(*id).await);
    }
    states
}

#[tokio::test]
async fn after_a_restart_tasks_of_a_job_are_held_until_a_worker_comes() {
    use State::{Held, Ready};
    let mut rig = Rig::new().await;
    let worker = serving(&rig.store).await;
    limit(&rig, "j", 2).await;
    let ids = rig.add_tasks(vec![of_job("j"); 4]).await;
    rig.claim(worker, 1).await;
    rig.reopen().await;
    assert_eq!(rig.store.info().await.unwrap().recovered, 1);
    assert_eq!(states(&rig, &ids).await, [Held; 4], "no worker is registered");
    assert_eq!(rig.store.audit().await.unwrap(), []);
    serving(&rig.store).await;
    assert_eq!(states(&rig, &ids).await, [Ready, Ready, Held, Held]);
    let job = rig.store.job(&name("j")).await.unwrap().unwrap();
    assert_eq!((job.ready, job.running, job.held, job.concurrency), (2, 0, 2, Some(2)));
    assert_eq!(rig.store.audit().await.unwrap(), []);
}

#[tokio::test]
async fn an_interrupted_cancellation_continues_at_the_next_open() {
    let mut rig = Rig::new().await;
    let held = rig.add_tasks(vec![of_job("j"); 3]).await;
    let steps = rig.add_tasks(vec![NewTask { on_failure: Some(OnFailure::Cancel), ..step("w") }; 3]).await;
    rig.store.close().await.unwrap();
    let foreign = Connection::open(rig.path()).unwrap();
    foreign.execute("UPDATE job SET state = 2", []).unwrap();
    foreign.execute("UPDATE workflow SET blocked_by = ?1, forgiven_step = 2", [held[0].raw()]).unwrap();
    drop(foreign);
    rig.reopen().await;
    assert_eq!(states(&rig, &held).await, [State::Cancelled; 3]);
    let after = states(&rig, &steps).await;
    assert_eq!(after, [State::Cancelled, State::Cancelled, State::Ready], "the third came later");
    assert_eq!(rig.store.audit().await.unwrap(), []);
}

#[tokio::test]
async fn others_can_write_while_a_large_job_is_cancelled() {
    const TASKS: usize = 6_000;
    let rig = Rig::new().await;
    let ids = rig.add_tasks(vec![of_job("j"); TASKS]).await;
    let change = JobChange { state: Some(JobState::Cancelled), ..JobChange::default() };
    let (jobs, store) = (name("j"), rig.store.clone());
    let cancelling = tokio::spawn(async move { store.set_job(&jobs, &change).await });
    // Enqueues are answered one after the other while the job's tasks are cancelled.
    let mut seen_between = 0;
    while !cancelling.is_finished() {
        rig.add(1).await;
        let depth = rig.store.lane_records().await.unwrap()[0].depth;
        seen_between += usize::from((1..TASKS as u64).contains(&depth.held));
    }
    assert_eq!(cancelling.await.unwrap().unwrap().held, 0);
    assert!(seen_between > 0, "an enqueue ran while only some were cancelled");
    assert_eq!(rig.state(ids[TASKS - 1]).await, State::Cancelled);
    assert_eq!(rig.store.audit().await.unwrap(), []);
}

#[tokio::test]
async fn a_large_job_and_a_long_workflow_are_cancelled_completely() {
    let rig = Rig::new().await;
    rig.add_tasks(vec![of_job("j"); 5_000]).await;
    rig.add_tasks(vec![step("w"); 2_500]).await;
    assert_eq!(rig.store.remove_job(&name("j"), false).await.unwrap(), 5_000);
    assert_eq!(rig.store.job(&name("j")).await.unwrap(), None);
    assert_eq!(rig.store.change_workflow(&name("w"), WorkflowAction::Cancel).await.unwrap(), 2_500);
    assert_eq!(rig.store.workflow(&name("w")).await.unwrap(), None);
    assert_eq!(rig.store.audit().await.unwrap(), []);
}

#[tokio::test]
async fn the_next_call_continues_a_turn_that_the_last_left_pending() {
    let rig = Rig::new().await;
    limit(&rig, "j", 9_000).await;
    rig.add_tasks(vec![of_job("j"); 8_000]).await;
    serving(&rig.store).await;
    let held = rig.store.job(&name("j")).await.unwrap().unwrap().held;
    assert!(held > 0 && held < 8_000, "one call moves a bounded number: {held} are left");
    assert_eq!(rig.store.audit().await.unwrap(), [], "a task with a pending turn is not stranded");
    let mut reports = 0;
    loop {
        let report = rig.store.admit(10).await.unwrap();
        reports += 1;
        if !report.more {
            assert_eq!(report.next_due, None);
            break;
        }
        assert_eq!(report.next_due, Some(START), "a turn is pending now");
    }
    assert!(reports > 1 || held <= 4_000);
    assert_eq!(rig.store.job(&name("j")).await.unwrap().unwrap().ready, 8_000);
}

#[tokio::test]
async fn the_audit_names_each_planted_breach() {
    let rig = Rig::new().await;
    let worker = serving(&rig.store).await;
    limit(&rig, "full", 1).await;
    limit(&rig, "open", 1).await;
    let full = rig.add_tasks(vec![of_job("full"); 2]).await;
    let open = rig.add_tasks(vec![of_job("open"); 2]).await;
    let steps = rig.add_tasks(vec![step("w"), step("w"), step("stuck"), step("stuck")]).await;
    let leaked = rig.add(1).await[0];
    rig.claim(worker, 100).await;
    assert_eq!(rig.store.audit().await.unwrap(), []);

    let foreign = Connection::open(rig.path()).unwrap();
    let plant = |sql: &str, ids: &[TaskId]| {
        for id in ids {
            assert_eq!(foreign.execute(sql, [id.raw()]).unwrap(), 1);
        }
    };
    plant("UPDATE task SET worker = 99 WHERE id = ?1", &[leaked]);
    plant("UPDATE task SET state = 1, ready_seq = 900 WHERE id = ?1", &[full[1], steps[1]]);
    plant("DELETE FROM task WHERE id = ?1", &[open[0], steps[2]]);
    foreign
        .execute(
            "INSERT INTO workflow (name, on_failure, blocked_by, created_at) VALUES ('v', 0, 12345, 0)",
            [],
        )
        .unwrap();
    let mut found: Vec<_> = rig
        .store
        .audit()
        .await
        .unwrap()
        .into_iter()
        .map(|finding| (finding.task, finding.promise, finding.detail))
        .collect();
    found.sort();
    let finding = |task, promise: &str, detail: &str| (task, promise.to_owned(), detail.to_owned());
    let mut expected = [
        finding(None, "LIMIT", "over-admitted: job full has more tasks ready and running than its limit"),
        finding(None, "NO-STRANDED", "stranded: workflow v is blocked by a task that is not there"),
        finding(Some(open[1]), "NO-STRANDED", "stranded: held though its job has room"),
        finding(Some(steps[1]), "WF-ORDER", "has passed before its turn"),
        finding(Some(steps[3]), "NO-STRANDED", "stranded: waits for no step before it"),
        finding(Some(leaked), "SLOT-BALANCED", "leaked: running under a worker that has ended"),
    ];
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn retention_keeps_a_task_that_blocks_a_workflow() {
    let rig = Rig::new().await;
    let worker = serving(&rig.store).await;
    let steps = rig.add_tasks(vec![step("dead"), step("dead"), step("gone"), step("gone")]).await;
    let plain = rig.add(1).await[0];
    let claimed = rig.claim(worker, 10).await.tasks;
    let failing: Vec<_> =
        claimed.iter().filter(|task| task.id == steps[0] || task.id == plain).cloned().collect();
    rig.settle(worker, &failing, &Settlement::Dead { error: "no".into() }).await;
    let cancelled: Vec<_> = claimed.iter().filter(|task| task.id == steps[2]).cloned().collect();
    rig.settle(worker, &cancelled, &Settlement::Cancelled { reason: "no".into() }).await;
    rig.clock.advance(Duration::from_hours(24 * 365));
    let none = Retention { history_age: Duration::ZERO, history_max_bytes: 0, dead_age: Duration::ZERO };
    while rig.store.retain(&none).await.unwrap().more {}
    assert_eq!(rig.state(steps[0]).await, State::Dead);
    assert_eq!(rig.state(steps[2]).await, State::Cancelled);
    assert!(rig.store.task(plain).await.unwrap().is_none(), "nothing waits for this one");
    assert_eq!(rig.store.audit().await.unwrap(), []);
    for workflow in ["dead", "gone"] {
        rig.store.change_workflow(&name(workflow), WorkflowAction::Skip).await.unwrap();
    }
    rig.clock.advance(Duration::from_hours(1));
    while rig.store.retain(&none).await.unwrap().more {}
    assert!(rig.store.task(steps[0]).await.unwrap().is_none());
    assert!(rig.store.task(steps[2]).await.unwrap().is_none());
}

#[tokio::test]
async fn a_copy_carries_jobs_workflows_and_schedules() {
    let rig = Rig::new().await;
    let worker = serving(&rig.store).await;
    limit(&rig, "j", 1).await;
    let held = rig.add_tasks(vec![of_job("j"); 2]).await;
    let steps = rig.add_tasks(vec![step("w"); 2]).await;
    let row = ScheduleRow {
        name: name("nightly"),
        spec: "{}".into(),
        paused: false,
        next_at: Some(START),
        last_at: None,
        last_task: None,
    };
    rig.store.put(&row).await.unwrap();
    rig.claim(worker, 10).await;
    let copy = rig.folder.path().join("copy.db");
    rig.store.backup(&copy).await.unwrap();

    let to = rig.folder.path().join("again.db");
    assert_eq!(restore(&copy, &to, RestoreOptions::default()).unwrap().handed_back, 2);
    let again = SqliteStore::open(&Location::File(to), rig.options.clone()).await.unwrap();
    let state = async |id| again.task(id).await.unwrap().unwrap().state;
    assert_eq!((state(held[0]).await, state(held[1]).await), (State::Held, State::Held));
    assert_eq!((state(steps[0]).await, state(steps[1]).await), (State::Ready, State::Waiting));
    assert_eq!(again.audit().await.unwrap(), []);
    serving(&again).await;
    assert_eq!((state(held[0]).await, state(held[1]).await), (State::Ready, State::Held));
    assert_eq!(again.job(&name("j")).await.unwrap().unwrap().concurrency, Some(1));
    assert_eq!(again.workflow(&name("w")).await.unwrap().unwrap().steps, 2);
    assert_eq!(again.list().await.unwrap(), [row]);
}

#[tokio::test]
async fn a_settlement_admits_the_next_task_and_names_its_lane() {
    let rig = Rig::new().await;
    let worker = serving(&rig.store).await;
    limit(&rig, "j", 1).await;
    let ids = rig.add_tasks(vec![of_job("j"); 2]).await;
    let claimed = rig.claim(worker, 10).await.tasks;
    assert_eq!(claimed.len(), 1);
    let settled = rig.settle(worker, &claimed, &DONE).await;
    assert_eq!(settled.lanes_ready, [claimed[0].lane.id]);
    assert_eq!(rig.state(ids[1]).await, State::Ready);
}
