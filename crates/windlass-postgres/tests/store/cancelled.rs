//! Calls that are dropped on their way: no connection is left inside a transaction, and nothing is half done.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use windlass_conformance::cases::rig::{Hand, Rig, task};
use windlass_core::{
    Outcome, SettleBatch, State, TaskId,
    store::{Filter, Redrive, Retention},
};

use crate::{
    support::{self, PostgresHarness},
    wait::until,
};

/// After this many polls every call here was answered long ago.
const POLLS_MAX: usize = 12;

/// A store whose sessions the server lists under a name of their own.
pub fn named() -> (PostgresHarness, String) {
    let program = support::schema_name();
    let url = format!("{}?application_name={program}", support::url());
    (PostgresHarness::new().through(&url), program)
}

/// Waits until no session of the program is inside a transaction or at work.
async fn at_rest(harness: &PostgresHarness, program: &str) {
    let busy = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{program} %' AND state <> 'idle'"
    );
    until("every session is idle and outside of a transaction", async || harness.number(&busy).await == 0)
        .await;
}

/// Polls a call so many times, each time when it asks for it, and drops it. Answers whether it was answered
/// before.
async fn dropped_after<T>(polls: usize, call: impl Future<Output = T>) -> bool {
    let mut call = pin!(call);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match call.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn a_dropped_settlement_is_applied_whole_or_not_at_all() {
    let (harness, program) = named();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    for polls in 1..=POLLS_MAX {
        let ids = rig.add_many("a", 2).await;
        let claimed = worker.claim(2).await;
        let ends = vec![(claimed[0].clone(), Outcome::Done(None)), (claimed[1].clone(), Outcome::dead("x"))];
        let batch: Arc<SettleBatch> = Arc::new(worker.batch(ends).await);
        dropped_after(polls, worker.store.settle(Arc::clone(&batch))).await;
        at_rest(&harness, &program).await;
        let states = (rig.state(ids[0]).await, rig.state(ids[1]).await);
        let whole = [(State::Running, State::Running), (State::Done, State::Dead)];
        assert!(whole.contains(&states), "after {polls} polls: {states:?}");
        assert_eq!(worker.store.settle(batch).await.unwrap().fenced, []);
        assert_eq!((rig.state(ids[0]).await, rig.state(ids[1]).await), (State::Done, State::Dead));
    }
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_claim_dropped_anywhere_is_undone_by_its_number() {
    let (harness, program) = named();
    let rig = Rig::open(&harness).await;
    let (mut one, mut two) = (rig.worker().await, rig.worker().await);
    rig.add_many("a", 10).await;
    for polls in 1..=POLLS_MAX {
        // Two demands are a transaction of several statements.
        let demands = [one.demand(3).await, two.demand(3).await];
        dropped_after(polls, one.store.claim(&demands)).await;
        at_rest(&harness, &program).await;
        let mut back = Vec::new();
        for hand in [&one, &two] {
            back.push(hand.store.unclaim(hand.id, hand.claim_no).await.unwrap());
        }
        assert!(back == [0, 0] || back == [3, 3], "after {polls} polls: {back:?}");
    }
    assert_eq!(one.claim(20).await.len(), 10);
    rig.assert_sound().await;
}

type Call<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The calls that are transactions or that many other calls wait behind.
fn calls<'a>(rig: &'a Rig<'_>, worker: &'a Hand<'_>, ids: &'a [TaskId]) -> Vec<Call<'a>> {
    let store = &rig.store;
    vec![
        Box::pin(async { drop(store.enqueue(vec![task("a")]).await) }),
        Box::pin(async { drop(store.cancel(ids, "no").await) }),
        Box::pin(async { drop(store.redrive(&[Redrive { id: ids[0], delay: Duration::ZERO }]).await) }),
        Box::pin(async { drop(store.tasks(&Filter::default(), None, 10).await) }),
        Box::pin(async { drop(store.task(ids[0]).await) }),
        Box::pin(async { drop(store.lane_records().await) }),
        Box::pin(async { drop(store.retain(&Retention::default()).await) }),
        Box::pin(async { drop(store.expire_workers(10).await) }),
        Box::pin(async { drop(store.promote_due(10).await) }),
        Box::pin(async { drop(worker.store.reconcile(worker.id, worker.claim_no, &[]).await) }),
        Box::pin(async { drop(worker.store.unclaim(worker.id, worker.claim_no).await) }),
        Box::pin(async { drop(worker.renew().await) }),
    ]
}

#[tokio::test]
async fn dropped_calls_leave_no_session_inside_a_transaction() {
    let (harness, program) = named();
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    for polls in [1, 2, 3, 4, 6, 8, 11] {
        let ids = rig.add_many("a", 3).await;
        worker.claim(2).await;
        for call in calls(&rig, &worker, &ids) {
            dropped_after(polls, call).await;
        }
        at_rest(&harness, &program).await;
        for call in calls(&rig, &worker, &ids) {
            call.await;
        }
    }
    rig.assert_sound().await;
}

/// Here each call waits in the middle for certain: the test holds the lock that it needs.
#[tokio::test]
async fn calls_dropped_in_the_server_leave_nothing_behind() {
    let (harness, program) = named();
    let rig = Rig::open(&harness).await;
    let ids = rig.add_many("a", 2).await;
    let mut worker = rig.worker().await;
    let claimed = worker.claim(1).await;
    let batch = Arc::new(worker.batch(vec![(claimed[0].clone(), Outcome::dead("x"))]).await);
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '{program} %' AND wait_event_type = 'Lock'"
    );
    let mut blocker = harness.client().await;
    let held = blocker.transaction().await.unwrap();
    let lock = format!("LOCK TABLE {}.task IN ACCESS EXCLUSIVE MODE", harness.schema());
    held.batch_execute(&lock).await.unwrap();
    let store = &rig.store;
    let calls: Vec<Call<'_>> = vec![
        Box::pin(async { drop(store.cancel(&ids, "no").await) }),
        Box::pin(async { drop(store.tasks(&Filter::default(), None, 10).await) }),
        Box::pin(async { drop(store.promote_due(10).await) }),
        Box::pin(async { drop(worker.store.settle(Arc::clone(&batch)).await) }),
        Box::pin(async { drop(worker.store.unclaim(worker.id, worker.claim_no).await) }),
    ];
    for (number, mut call) in calls.into_iter().enumerate() {
        let stuck = async {
            until("the call waits for the lock", async || harness.number(&waiting).await > number as i64)
                .await;
        };
        tokio::select! {
            () = &mut call => panic!("call {number} went through the lock"),
            () = stuck => drop(call),
        }
    }
    held.rollback().await.unwrap();
    at_rest(&harness, &program).await;
    // Statements that were under way when the lock was released may have run; transactions were not
    // committed.
    assert_eq!(rig.state(claimed[0].id).await, State::Running);
    assert_eq!(worker.store.settle(batch).await.unwrap().fenced, []);
    rig.add(task("a")).await;
    assert_eq!(
        worker.claim(5).await.len(),
        rig.all().await.iter().filter(|task| task.state == State::Running).count()
    );
    rig.assert_sound().await;
}
