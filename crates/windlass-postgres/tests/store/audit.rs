//! Rows that break a promise of the gates, written by the test: the audit names each, with the word under
//! which it is counted.

use windlass_conformance::cases::rig::{MANY, Rig, in_queue, name, of_job, step_of, task};
use windlass_core::{NewTask, TaskId};

use crate::support::PostgresHarness;

/// Changes rows by SQL; `{s}` is replaced by the schema, `{id}` by a task.
async fn plant(harness: &PostgresHarness, sql: &str, id: TaskId) {
    harness.execute(&sql.replace("{id}", &id.raw().to_string())).await;
}

/// What the audit says of a task: the promise, and the word that its detail starts with.
async fn found(rig: &Rig<'_>) -> Vec<(TaskId, String, String)> {
    let findings = rig.store.audit().await.unwrap();
    let word = |detail: &str| detail.split([':', ' ']).next().unwrap().to_owned();
    let mut found: Vec<_> = findings
        .into_iter()
        .map(|finding| (finding.task.unwrap(), finding.promise, word(&finding.detail)))
        .collect();
    found.sort();
    found
}

fn finding(task: TaskId, promise: &str, word: &str) -> (TaskId, String, String) {
    (task, promise.to_owned(), word.to_owned())
}

#[tokio::test]
async fn a_leaked_task_is_named() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    rig.add_many("a", 2).await;
    let leaked = worker.claim(MANY).await[0].id;
    assert_eq!(found(&rig).await, []);
    plant(&harness, "UPDATE {s}.task SET worker = 99 WHERE id = {id}", leaked).await;
    assert_eq!(found(&rig).await, [finding(leaked, "SLOT-BALANCED", "leaked")]);
    let text = "UPDATE {s}.task SET worker = 1 WHERE id = {id}; UPDATE {s}.worker SET ended_at = 1";
    plant(&harness, text, leaked).await;
    assert_eq!(found(&rig).await.len(), 2, "both, because their worker has ended");
}

#[tokio::test]
async fn an_over_admitted_job_is_named_unless_its_limit_fell() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    rig.limit("j", 2).await;
    let ids = rig.add_all(vec![of_job("j"); 3]).await;
    assert_eq!(worker.claim(MANY).await.len(), 2);
    rig.limit("j", 1).await;
    assert_eq!(found(&rig).await, [], "more runs than the limit allows since that fell");
    let text = "UPDATE {s}.task SET state = 1, ready_seq = 1 WHERE id = {id}";
    plant(&harness, text, ids[2]).await;
    assert_eq!(
        found(&rig).await,
        [finding(ids[2], "LIMIT", "over-admitted")],
        "that does not excuse ready tasks"
    );
    rig.limit("j", 2).await;
    assert_eq!(found(&rig).await, [], "taken back");
    let text = "UPDATE {s}.task SET state = 2, worker = 1, lease = 1, attempt = 1 WHERE id = {id}";
    plant(&harness, text, ids[2]).await;
    assert_eq!(found(&rig).await, [finding(ids[2], "LIMIT", "over-admitted")]);
}

#[tokio::test]
async fn a_stranded_task_is_named() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker_of(&["a"], &[], 10).await;
    rig.limit("j", 1).await;
    rig.limit("k", 1).await;
    let held = rig.add_all(vec![of_job("j"); 2]).await;
    let steps = rig.add_all(vec![step_of("w"); 3]).await;
    let elsewhere = rig.add(NewTask { job: Some(name("k")), ..in_queue("b", "q") }).await;
    let orphan = rig.add(of_job("gone")).await;
    let plain = rig.add(task("a")).await;
    worker.claim(MANY).await;
    assert_eq!(found(&rig).await, []);

    // The room of a job is unused; the step before another is missing; a task without a live worker has room;
    // a job is missing.
    plant(&harness, "DELETE FROM {s}.task WHERE id = {id}", held[0]).await;
    plant(&harness, "DELETE FROM {s}.task WHERE id = {id}", steps[0]).await;
    plant(&harness, "UPDATE {s}.task SET state = 1, ready_seq = 1 WHERE id = {id}", elsewhere).await;
    let text = "UPDATE {s}.task SET state = 3, worker = NULL WHERE id = {id}; DELETE FROM {s}.job WHERE name = 'gone'";
    plant(&harness, text, orphan).await;
    let stranded = |task| finding(task, "NO-STRANDED", "stranded");
    let mut expected = [stranded(held[1]), stranded(steps[1]), stranded(elsewhere), stranded(orphan)];
    expected.sort();
    assert_eq!(found(&rig).await, expected, "and nothing of {plain}");

    // A row in `gate_todo` explains the first finding, a block the second one.
    plant(&harness, "INSERT INTO {s}.gate_todo (kind, key) VALUES (0, 'j'), (0, 'gone')", held[1]).await;
    plant(&harness, "UPDATE {s}.workflow SET blocked_by = 12345", steps[1]).await;
    assert_eq!(found(&rig).await, [stranded(elsewhere)]);
}

#[tokio::test]
async fn a_step_that_has_passed_before_its_turn_is_named() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    let steps = rig.add_all(vec![step_of("w"); 2]).await;
    worker.claim(MANY).await;
    plant(&harness, "UPDATE {s}.task SET state = 1, ready_seq = 1 WHERE id = {id}", steps[1]).await;
    assert_eq!(found(&rig).await, [finding(steps[1], "WF-ORDER", "has")]);
    plant(&harness, "UPDATE {s}.task SET state = 4, ready_seq = NULL WHERE id = {id}", steps[1]).await;
    plant(&harness, "UPDATE {s}.workflow SET blocked_by = {id}", steps[0]).await;
    let expected = [finding(steps[0], "NO-STRANDED", "stranded"), finding(steps[0], "WF-ORDER", "has")];
    assert_eq!(found(&rig).await, expected);
}
