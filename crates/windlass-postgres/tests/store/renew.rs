//! Renewals of one moment: they share a statement, and each gets its own answer.
//!
//! They run on a thread beside the test. A test that fails while it holds a lock then releases it before its
//! schema is dropped.

use std::{pin::Pin, sync::Arc, task::Poll, time::Duration};

use tokio_postgres::{Client, Transaction};
use windlass_conformance::{
    Harness,
    cases::rig::{Hand, Rig, lease_of, name},
};
use windlass_core::{Error, NewWorker, Result, Store, WorkerCounts, WorkerId, WorkerReport, source::Renewed};
use windlass_postgres::Options;

use crate::{cancelled::named, support::PostgresHarness, wait::until};

/// So long that no statement is cancelled while a test holds a lock.
const TTL: Duration = Duration::from_mins(5);
const SLOTS: u32 = 100;
/// The answer to a worker without cancel requests and with unchanged slots.
const PLAIN: Result<Renewed> = Ok(Renewed { cancels: Vec::new(), slots: Some(SLOTS), epoch: Some(0) });

type Call = Pin<Box<dyn Future<Output = Result<Renewed>> + Send>>;

/// Workers of one store, the first of which is renewed before all others.
struct Fleet<'h> {
    harness: &'h PostgresHarness,
    program: &'h str,
    rig: Rig<'h>,
    first: WorkerId,
    workers: Vec<WorkerId>,
}

impl<'h> Fleet<'h> {
    async fn of(n: usize, harness: &'h PostgresHarness, program: &'h str) -> Self {
        let rig = Rig::open(harness).await;
        let first = register(&*rig.store).await;
        let mut workers = Vec::new();
        for _ in 0..n {
            workers.push(register(&*rig.store).await);
        }
        Self { harness, program, rig, first, workers }
    }

    fn renewal(&self, worker: WorkerId, report: WorkerReport) -> Call {
        let store = Arc::clone(&self.rig.store);
        Box::pin(async move { store.renew(worker, report).await })
    }

    /// A renewal of each worker; the reports tell them apart.
    fn renewals(&self) -> Vec<Call> {
        self.workers.iter().zip(1..).map(|(worker, number)| self.renewal(*worker, report(number))).collect()
    }

    /// Locks a worker's row until the answer is dropped.
    async fn hold<'c>(&self, client: &'c mut Client, worker: WorkerId) -> Transaction<'c> {
        let held = client.transaction().await.unwrap();
        let schema = self.harness.schema();
        let lock = format!("SELECT 1 FROM \"{schema}\".worker WHERE id = {} FOR UPDATE", worker.0);
        held.query_one(&lock, &[]).await.unwrap();
        held
    }

    /// Waits until a renewal waits for a lock.
    async fn until_one_waits(&self) {
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{} renewals' AND wait_event_type = 'Lock'",
            self.program
        );
        until("a renewal waits for a lock", async || self.harness.number(&waiting).await == 1).await;
    }

    /// Waits until the server runs no renewal.
    async fn until_none_runs(&self) {
        let running = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{} renewals' AND state = 'active'",
            self.program
        );
        until("no renewal runs", async || self.harness.number(&running).await == 0).await;
    }

    /// Starts the renewal of the first worker, which waits for a lock until the answer is dropped.
    async fn first_waits<'c>(&self, client: &'c mut Client) -> (Transaction<'c>, Call) {
        let held = self.hold(client, self.first).await;
        let mut first = self.renewal(self.first, WorkerReport::default());
        tokio::select! {
            biased;
            answer = &mut first => panic!("the renewal did not wait: {answer:?}"),
            () = self.until_one_waits() => {}
        }
        (held, first)
    }

    /// Lets calls gather while the renewal of the first worker waits; answers their results.
    async fn together(&self, mut calls: Vec<Call>) -> Vec<Result<Renewed>> {
        let mut client = self.harness.client().await;
        let (held, first) = self.first_waits(&mut client).await;
        begin(&mut calls).await;
        held.rollback().await.unwrap();
        first.await.unwrap();
        answers(calls).await
    }

    /// Statements of renewals so far.
    fn statements(&self) -> u64 {
        let usage = self.rig.store.usage();
        usage.pools.iter().find(|pool| pool.name == "renewals").unwrap().uses
    }

    /// The `available` of the workers' last reports, in their order.
    async fn available(&self) -> Vec<u32> {
        let records = self.rig.store.workers().await.unwrap();
        let of = |worker: &WorkerId| records.iter().find(|seen| seen.id == *worker).unwrap().available;
        self.workers.iter().map(of).collect()
    }

    /// Lets a worker's lease run out.
    async fn let_run_out(&self, worker: WorkerId) {
        self.harness
            .execute(&format!("UPDATE {{s}}.worker SET expires_at = 1 WHERE id = {}", worker.0))
            .await;
    }

    /// A worker whose calls the test makes itself.
    fn hand(&self, worker: WorkerId) -> Hand<'h> {
        let store = Arc::clone(&self.rig.store);
        let (kinds, queues) = (vec![name("a")], Vec::new());
        Hand { harness: self.harness, store, id: worker, kinds, queues, claim_no: 0, batch_no: 0 }
    }
}

async fn register(store: &dyn Store) -> WorkerId {
    let worker = NewWorker {
        host: "host".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        kinds: vec![name("a")],
        queues: Vec::new(),
        slots: SLOTS,
        lease_ttl: TTL,
    };
    store.register(worker).await.unwrap()
}

/// A report that differs from every other one in each field.
fn report(number: u32) -> WorkerReport {
    let mut counts = WorkerCounts::default();
    counts.rest.done = u64::from(number);
    WorkerReport {
        available: number,
        in_flight: 1_000 + number,
        draining: number.is_multiple_of(2),
        memory_usage: f64::from(number) / 256.0,
        factor: 1.0 / f64::from(number),
        reason: format!("reason {number}"),
        counts,
    }
}

/// Polls each call once: now it waits in line.
async fn begin(calls: &mut [Call]) {
    std::future::poll_fn(|cx| {
        assert!(calls.iter_mut().all(|call| call.as_mut().poll(cx).is_pending()), "nothing is answered yet");
        Poll::Ready(())
    })
    .await;
}

async fn answers(calls: Vec<Call>) -> Vec<Result<Renewed>> {
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_hundred_simultaneous_renewals_take_two_statements() {
    let (harness, program) = named();
    let fleet = Fleet::of(199, &harness, &program).await;
    let (store, workers) = (&fleet.rig.store, &fleet.workers);
    let (run_out, retired, resized) = (50, 60, 70);
    let (asked_once, asked_twice, not_asked) = (80, 90, 100);
    fleet.let_run_out(workers[run_out]).await;
    store.retire(workers[retired]).await.unwrap();
    store.set_worker_slots(workers[resized], 7).await.unwrap();
    let mut claimed = Vec::new();
    for (worker, n) in [(asked_once, 1), (asked_twice, 2), (not_asked, 1)] {
        fleet.rig.add_many("a", n).await;
        claimed.push(fleet.hand(workers[worker]).claim(n as u32).await);
    }
    let asked: Vec<_> = claimed[..2].iter().flatten().map(|task| task.id).collect();
    assert_eq!(asked.len(), 3);
    for (id, reason) in asked.iter().zip(["x", "y", "z"]) {
        store.cancel(&[*id], reason).await.unwrap().remove(0).result.unwrap();
    }
    fleet.rig.advance(Duration::from_secs(3)).await;
    let before = fleet.statements();
    let answered = fleet.together(fleet.renewals()).await;
    assert_eq!(fleet.statements() - before, 2);

    let cancel = |of: usize, n: usize, reason: &str| (lease_of(&claimed[of][n]), reason.to_owned());
    let told = |cancels| Ok(Renewed { cancels, slots: Some(SLOTS), epoch: Some(0) });
    let mut expected = vec![PLAIN; workers.len()];
    expected[run_out] = Err(Error::WorkerExpired);
    expected[retired] = Err(Error::WorkerExpired);
    expected[resized] = Ok(Renewed { cancels: Vec::new(), slots: Some(7), epoch: Some(0) });
    expected[asked_once] = told(vec![cancel(0, 0, "x")]);
    expected[asked_twice] = told(vec![cancel(1, 0, "y"), cancel(1, 1, "z")]);
    assert_eq!(answered, expected);

    let records = store.workers().await.unwrap();
    let said = |worker: &WorkerId| {
        let seen = records.iter().find(|seen| seen.id == *worker).unwrap().clone();
        WorkerReport {
            available: seen.available,
            in_flight: seen.in_flight,
            draining: seen.draining,
            memory_usage: seen.memory_usage,
            factor: seen.factor,
            reason: seen.reason,
            counts: seen.counts,
        }
    };
    let said: Vec<WorkerReport> = workers.iter().map(said).collect();
    let mut reports: Vec<WorkerReport> = (1..=199).map(report).collect();
    reports[run_out] = WorkerReport { available: SLOTS, ..WorkerReport::default() };
    reports[retired] = WorkerReport::default();
    assert_eq!(said, reports);
    let now = harness.now().await.as_ms();
    let prolonged = format!(
        "FROM {{s}}.worker WHERE renewed_at = {now} AND expires_at = {now} + lease_ttl_ms AND ended_at IS NULL"
    );
    assert_eq!(harness.number(&format!("SELECT count(*) {prolonged}")).await, 198);
    let commits = harness.number(&format!("SELECT count(DISTINCT xmin::text) {prolonged}")).await;
    assert_eq!(commits, 2, "one for the first, one for all others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_idle_store_renews_each_worker_at_once() {
    let (harness, program) = named();
    let fleet = Fleet::of(3, &harness, &program).await;
    let before = fleet.statements();
    for call in fleet.renewals() {
        assert_eq!(call.await, PLAIN);
    }
    assert_eq!(fleet.statements() - before, 3);
    assert_eq!(fleet.available().await, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_locked_row_delays_no_other_worker() {
    let (harness, program) = named();
    let fleet = Fleet::of(4, &harness, &program).await;
    let (mut one, mut two) = (harness.client().await, harness.client().await);
    let second_held = fleet.hold(&mut two, fleet.workers[1]).await;
    let (first_held, first) = fleet.first_waits(&mut one).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    first_held.rollback().await.unwrap();
    let held = others.remove(1);
    assert_eq!(answers(others).await, [PLAIN, PLAIN, PLAIN], "while the row is held");
    fleet.until_one_waits().await;
    assert_eq!(fleet.available().await, [1, SLOTS, 3, 4]);
    second_held.rollback().await.unwrap();
    assert_eq!((first.await, held.await), (PLAIN, PLAIN));
    assert_eq!(fleet.available().await, [1, 2, 3, 4]);
}

/// As a claim of many workers at once locks them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rows_that_are_held_together_are_renewed_together() {
    let (harness, program) = named();
    let fleet = Fleet::of(20, &harness, &program).await;
    let (mut one, mut two) = (harness.client().await, harness.client().await);
    let claim = two.transaction().await.unwrap();
    let lock = format!(
        "SELECT id FROM \"{}\".worker WHERE id <> {} FOR NO KEY UPDATE",
        harness.schema(),
        fleet.first.0
    );
    assert_eq!(claim.query(&lock, &[]).await.unwrap().len(), 20);
    let before = fleet.statements();
    let (first_held, first) = fleet.first_waits(&mut one).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    first_held.rollback().await.unwrap();
    assert_eq!(first.await, PLAIN);
    fleet.until_one_waits().await;
    claim.rollback().await.unwrap();
    assert_eq!(answers(others).await, vec![PLAIN; 20]);
    assert_eq!(fleet.statements() - before, 4, "the first, all, one that waits, the rest");
    assert_eq!(fleet.available().await, (1..=20).collect::<Vec<_>>());
}

/// The worker leaves while its renewal waits for the row: it must not be renewed as a live worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_ends_while_its_row_is_held_is_expired() {
    let (harness, program) = named();
    let fleet = Fleet::of(2, &harness, &program).await;
    let mut client = harness.client().await;
    let held = fleet.hold(&mut client, fleet.workers[0]).await;
    let mut first_client = harness.client().await;
    let (first_held, first) = fleet.first_waits(&mut first_client).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    first_held.rollback().await.unwrap();
    let ends = others.remove(0);
    assert_eq!(answers(others).await, [PLAIN]);
    fleet.until_one_waits().await;
    let end =
        format!("UPDATE \"{}\".worker SET ended_at = 1 WHERE id = {}", harness.schema(), fleet.workers[0].0);
    held.batch_execute(&end).await.unwrap();
    held.commit().await.unwrap();
    assert_eq!(ends.await, Err(Error::WorkerExpired));
    assert_eq!(first.await, PLAIN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn dropped_callers_delay_no_other_caller() {
    let (harness, program) = named();
    let fleet = Fleet::of(3, &harness, &program).await;
    let mut client = harness.client().await;
    let (held, first) = fleet.first_waits(&mut client).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    drop(others.remove(1));
    drop(first);
    assert_eq!(answers(others).await, [PLAIN, PLAIN], "while the row of the first is held");
    let available = fleet.available().await;
    assert_eq!((available[0], available[2]), (1, 3));
    held.rollback().await.unwrap();
    // The server still runs the statement of the dropped caller. It would wait for the row's next lock too, and
    // be counted among those that wait.
    fleet.until_none_runs().await;
    assert_eq!(fleet.together(fleet.renewals()).await, vec![PLAIN; 3], "and everything goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_of_several_reports_of_one_worker_stays() {
    let (harness, program) = named();
    let fleet = Fleet::of(2, &harness, &program).await;
    let mut calls = fleet.renewals();
    calls.push(fleet.renewal(fleet.workers[0], WorkerReport { available: 77, ..WorkerReport::default() }));
    assert_eq!(fleet.together(calls).await, vec![PLAIN; 3]);
    assert_eq!(fleet.available().await, [77, 2]);
}

async fn one_of_many_is_refused(pooled: bool) {
    let (harness, program) = named();
    let harness = harness.with(move |options| Options { pooled, ..options });
    let fleet = Fleet::of(64, &harness, &program).await;
    let mut calls = fleet.renewals();
    let report = WorkerReport { reason: "no\0text".to_owned(), ..WorkerReport::default() };
    calls[40] = fleet.renewal(fleet.workers[40], report);
    let before = fleet.statements();
    let mut answered = fleet.together(calls).await;
    let statements = fleet.statements() - before;
    assert!(statements < 20, "{statements} statements for 65 workers");
    let refused = answered.remove(40).unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    assert_eq!(answered, vec![PLAIN; 63]);
    let mut available: Vec<u32> = (1..=64).collect();
    available[40] = SLOTS;
    assert_eq!(fleet.available().await, available);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_report_that_the_server_refuses_fails_only_its_own_worker() {
    one_of_many_is_refused(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_same_is_true_behind_a_pooler() {
    one_of_many_is_refused(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lost_connection_is_told_to_all_its_callers() {
    let (harness, program) = named();
    let fleet = Fleet::of(10, &harness, &program).await;
    let mut client = harness.client().await;
    let locked = client.transaction().await.unwrap();
    let lock = format!("LOCK TABLE \"{}\".worker IN ACCESS EXCLUSIVE MODE", harness.schema());
    locked.batch_execute(&lock).await.unwrap();
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{program} renewals'
         AND wait_event_type = 'Lock'"
    );
    let mut first = fleet.renewal(fleet.first, WorkerReport::default());
    begin(std::slice::from_mut(&mut first)).await;
    fleet.until_one_waits().await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    assert_eq!(harness.number(&end).await, 1);
    let lost = first.await.unwrap_err();
    assert!(matches!(lost, Error::Unknown(_)), "{lost:?}");
    fleet.until_one_waits().await;
    begin(&mut others).await;
    assert_eq!(harness.number(&end).await, 1);
    for answer in answers(others).await {
        let lost = answer.unwrap_err();
        assert!(matches!(lost, Error::Unknown(_)), "{lost:?}");
    }
    locked.rollback().await.unwrap();
    assert_eq!(fleet.together(fleet.renewals()).await, vec![PLAIN; 10], "on another connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn waiting_callers_are_told_when_the_store_is_closed() {
    let (harness, program) = named();
    let fleet = Fleet::of(3, &harness, &program).await;
    let mut client = harness.client().await;
    let (held, first) = fleet.first_waits(&mut client).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    fleet.rig.store.close().await.unwrap();
    held.rollback().await.unwrap();
    assert_eq!(first.await, PLAIN, "it was on its way");
    others.extend(fleet.renewals());
    for answer in answers(others).await {
        let refused = answer.unwrap_err();
        assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn renewals_keep_the_doorbell_of_their_process_armed() {
    let (harness, program) = named();
    let fleet = Fleet::of(2, &harness, &program).await;
    until("it listens", async || fleet.rig.store.hears_of_new_tasks()).await;
    assert_eq!(fleet.hand(fleet.workers[0]).claim(1).await, []);
    let mut client = harness.client().await;
    let (held, first) = fleet.first_waits(&mut client).await;
    let mut others = fleet.renewals();
    begin(&mut others).await;
    // The sweep of the first worker has read its clock already.
    fleet.rig.advance(Duration::from_secs(3)).await;
    held.rollback().await.unwrap();
    assert_eq!((first.await, answers(others).await), (PLAIN, vec![PLAIN; 2]));
    let armed_for =
        harness.number("SELECT armed_until FROM {s}.doorbell").await - harness.now().await.as_ms();
    assert_eq!(armed_for, 6_000);
}

/// A renewal lets the next sweep skip its read for a while, but not if a worker of the same group has
/// expired.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_sweep_finds_an_expired_worker_of_the_group() {
    let (harness, program) = named();
    let fleet = Fleet::of(3, &harness, &program).await;
    assert_eq!(fleet.together(fleet.renewals()).await, vec![PLAIN; 3]);
    fleet.let_run_out(fleet.workers[1]).await;
    let answered = fleet.together(fleet.renewals()).await;
    assert_eq!(answered, [PLAIN, Err(Error::WorkerExpired), PLAIN]);
    let swept = fleet.rig.store.expire_workers(10).await.unwrap();
    assert_eq!(swept.workers, [fleet.workers[1]]);
}
