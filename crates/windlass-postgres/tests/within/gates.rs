//! Tasks of jobs and workflows inside a transaction of the caller's own. The transaction may stay open for
//! long: it delays no other caller, and its tasks pass the gates after its commit.

use tokio_postgres::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use tokio_postgres::{Client, Transaction};
use windlass_conformance::cases::rig::{Hand, MANY, Rig, name, of_job, step_of};
use windlass_core::{NewTask, State, TaskId};

use crate::{
    desk::{add, caller, number, schema},
    sql::psql,
    support::PostgresHarness,
};

const LEVELS: [IsolationLevel; 3] = [ReadCommitted, RepeatableRead, Serializable];

async fn begin(db: &mut Client, level: IsolationLevel) -> Transaction<'_> {
    db.build_transaction().isolation_level(level).start().await.unwrap()
}

/// The same call as psql makes it, on a connection whose transaction is open.
async fn enqueue(rig: &Rig<'_>, tx: &Transaction<'_>, gates: &str) -> TaskId {
    let text = format!("SELECT id FROM {}.enqueue(kind => 'a', {gates})", schema(rig));
    tx.query_one(&text, &[]).await.unwrap().get::<_, String>(0).parse().unwrap()
}

/// Ends tasks one by one until nothing can be claimed. Answers them in the order of their claims. At most
/// `limit` run at once.
async fn work_off(worker: &mut Hand<'_>, limit: usize) -> Vec<TaskId> {
    let mut done = Vec::new();
    loop {
        let claimed = worker.claim(MANY).await;
        assert!(claimed.len() <= limit, "{} at once", claimed.len());
        if claimed.is_empty() {
            return done;
        }
        for task in &claimed {
            worker.finish(task).await;
            done.push(task.id);
        }
    }
}

#[tokio::test]
async fn a_job_that_a_transaction_makes_has_the_limit_that_it_gives() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
    assert!(trace.is_some());
    for (job, trace) in [("plain", None), ("traced", trace)] {
        let limited = NewTask { job_concurrency: Some(2), trace, ..of_job(job) };
        let mut tx = begin(&mut db, ReadCommitted).await;
        for _ in 0..4 {
            add(&rig, &mut tx, &limited).await.unwrap();
        }
        tx.commit().await.unwrap();
        assert_eq!(work_off(&mut worker, 2).await.len(), 4);
        assert_eq!(rig.job(job).await.concurrency, Some(2));
    }
    rig.assert_sound().await;
}

/// A settlement that waited for the open transaction would wait for ever.
#[tokio::test]
async fn settlements_go_on_while_a_transaction_of_the_job_is_open() {
    for level in LEVELS {
        let harness = PostgresHarness::new();
        let rig = Rig::open(&harness).await;
        let (mut db, mut worker) = (caller().await, rig.worker().await);
        rig.limit("j", 2).await;
        let early = rig.add_all(vec![of_job("j"); 40]).await;
        let mut tx = begin(&mut db, level).await;
        let mut late = Vec::new();
        for _ in 0..3 {
            late.push(add(&rig, &mut tx, &of_job("j")).await.unwrap().id);
        }
        late.push(enqueue(&rig, &tx, "job => 'j'").await);
        assert_eq!(work_off(&mut worker, 2).await.len(), early.len());
        // Meanwhile other callers may change the job and add tasks to it.
        rig.limit("j", 3).await;
        let beside = rig.add_all(vec![of_job("j"); 5]).await;
        assert_eq!(rig.figures("j").await, (3, 0, 2));
        rig.limit("j", 2).await;
        assert_eq!(work_off(&mut worker, 2).await, beside);
        assert_eq!(rig.figures("j").await, (0, 0, 0));

        tx.commit().await.unwrap();
        let first = worker.claim(MANY).await;
        assert_eq!(first.iter().map(|task| task.id).collect::<Vec<_>>(), late[..2], "{level:?}");
        assert_eq!(rig.figures("j").await, (0, 2, 2));
        for task in &first {
            worker.finish(task).await;
        }
        assert_eq!(work_off(&mut worker, 2).await, late[2..]);
        rig.assert_sound().await;
    }
}

/// The job's room is taken when the transaction commits.
#[tokio::test]
async fn what_a_transaction_brings_to_a_full_job_is_held() {
    for level in LEVELS {
        let harness = PostgresHarness::new();
        let rig = Rig::open(&harness).await;
        let (mut db, mut worker) = (caller().await, rig.worker().await);
        rig.limit("j", 1).await;
        rig.add(of_job("j")).await;
        assert_eq!(work_off(&mut worker, 1).await.len(), 1, "the lane is there");
        let mut tx = begin(&mut db, level).await;
        let late = add(&rig, &mut tx, &of_job("j")).await.unwrap().id;
        rig.add_all(vec![of_job("j"); 2]).await;
        let running = worker.claim_one().await;
        tx.commit().await.unwrap();
        assert_eq!(worker.claim_ids(MANY).await, []);
        assert_eq!(rig.figures("j").await, (0, 1, 2), "{level:?}");
        rig.assert_sound().await;
        worker.finish(&running).await;
        // Its id was drawn first, and a job orders its tasks by id.
        assert_eq!(worker.claim_ids(MANY).await, [late]);
    }
}

#[tokio::test]
async fn a_rolled_back_transaction_leaves_nothing_at_the_gates() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, _worker) = (caller().await, rig.worker().await);
    let mut tx = db.transaction().await.unwrap();
    add(&rig, &mut tx, &of_job("j")).await.unwrap();
    add(&rig, &mut tx, &step_of("w")).await.unwrap();
    enqueue(&rig, &tx, "job => 'k', workflow => 'v'").await;
    tx.rollback().await.unwrap();
    rig.store.admit(MANY).await.unwrap();
    assert_eq!(rig.store.gates().jobs(None, 10).await.unwrap(), []);
    assert_eq!(rig.store.gates().workflows(false, None, 10).await.unwrap(), []);
    let left = "SELECT (SELECT count(*) FROM {s}.task) + (SELECT count(*) FROM {s}.gate_todo)";
    assert_eq!(number(&rig, left).await, 0);
}

/// A step that was appended in an open transaction comes after those that had their turn before its commit.
#[tokio::test]
async fn a_workflow_goes_on_while_a_transaction_with_a_step_is_open() {
    for level in LEVELS {
        let harness = PostgresHarness::new();
        let rig = Rig::open(&harness).await;
        let mut db = caller().await;
        let mut workers = [rig.worker().await, rig.worker().await];
        let mut quick = rig.add_all(vec![step_of("w"); 2]).await;
        let mut tx = begin(&mut db, level).await;
        let slow = add(&rig, &mut tx, &step_of("w")).await.unwrap().id;
        let slow_too = enqueue(&rig, &tx, "job => 'j', workflow => 'w'").await;
        quick.push(rig.add(step_of("w")).await);
        let answer = psql(&rig, "SELECT id FROM windlass.enqueue('a', job => 'j', workflow => 'w');").await;
        quick.push(answer.unwrap().parse().unwrap());
        for (number, id) in quick.iter().take(3).enumerate() {
            let step = workers[number % 2].claim_one().await;
            assert_eq!(step.id, *id, "{level:?}");
            assert_eq!(workers[(number + 1) % 2].claim_ids(MANY).await, [], "one at a time");
            workers[number % 2].finish(&step).await;
        }
        tx.commit().await.unwrap();
        for (number, id) in [quick[3], slow, slow_too].into_iter().enumerate() {
            let step = workers[number % 2].claim_one().await;
            assert_eq!(step.id, id, "the same order for all callers");
            assert_eq!(workers[(number + 1) % 2].claim_ids(MANY).await, [], "one at a time");
            workers[number % 2].finish(&step).await;
        }
        assert_eq!(rig.workflow("w").await, None);
        rig.assert_sound().await;
    }
}

/// If a workflow is forgotten while a step of it is on its way, that step makes the workflow anew.
#[tokio::test]
async fn a_workflow_that_ended_meanwhile_begins_anew() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let (mut db, mut worker) = (caller().await, rig.worker().await);
    let first = rig.add(step_of("w")).await;
    let mut tx = db.transaction().await.unwrap();
    let slow = add(&rig, &mut tx, &step_of("w")).await.unwrap().id;
    assert_eq!(work_off(&mut worker, 1).await, [first]);
    assert_eq!(rig.workflow("w").await, None);
    tx.commit().await.unwrap();
    assert_eq!(work_off(&mut worker, 1).await, [slow]);
    assert_eq!(rig.workflow("w").await, None);
    rig.assert_sound().await;
}

/// No caller reads what another one writes: so even SERIALIZABLE callers do not fail each other, in any order
/// of commits.
#[tokio::test]
async fn callers_at_once_at_the_same_gates_do_not_fail_each_other() {
    for level in LEVELS {
        let harness = PostgresHarness::new();
        let rig = Rig::open(&harness).await;
        rig.limit("j", 1).await;
        let mut worker = rig.worker().await;
        rig.add(of_job("j")).await;
        let (mut one, mut two) = (caller().await, caller().await);
        let (mut first, mut second) = (begin(&mut one, level).await, begin(&mut two, level).await);
        let both = NewTask { workflow: Some(name("w")), ..of_job("j") };
        let mut steps = Vec::new();
        for _ in 0..2 {
            for tx in [&mut first, &mut second] {
                add(&rig, tx, &of_job("j")).await.unwrap();
                steps.push(add(&rig, tx, &both).await.unwrap().id);
            }
        }
        second.commit().await.unwrap();
        first.commit().await.unwrap();
        let done = work_off(&mut worker, 1).await;
        assert_eq!(done.len(), 9);
        let in_order: Vec<_> = done.into_iter().filter(|id| steps.contains(id)).collect();
        assert_eq!(
            in_order, steps,
            "{level:?}: no admission ran in between, so the order is that of the appends"
        );
        for id in steps {
            assert_eq!(rig.state(id).await, State::Done);
        }
        rig.assert_sound().await;
    }
}
