//! An idle worker offers to take the next task. The task is leased in the commit that adds it, once, and is
//! handed back if no worker starts it.

use windlass_conformance::cases::rig::{Hand, Rig, name, of_job, task};
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Hint, NewTask, Payload, State, Store, TaskId, WorkerReport, source::Rest,
    task::AttemptResult,
};

use crate::{
    doorbell::{Subscriber, hint},
    support::PostgresHarness,
    wait::until,
};

const OUT: &str = "SELECT count(*) FROM {s}.doorbell WHERE worker IS NOT NULL";
/// Sets a channel that no session listens on, so that the notification is lost.
const NO_CHANNEL: &str = "UPDATE {s}.doorbell SET whisper = 'unused'";

fn trusting() -> PostgresHarness {
    PostgresHarness::new()
}

/// The next claim of a worker that claims again when it is told to.
async fn look(worker: &mut Hand<'_>, n: u32) -> ClaimAnswer {
    let demand = Demand { waits: true, ..worker.demand(n).await };
    worker.store.claim(&[demand]).await.unwrap()
}

/// A worker that has found nothing, and whose offer is laid out.
async fn offering<'h>(harness: &PostgresHarness, rig: &Rig<'h>) -> Hand<'h> {
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    until("it listens", async || worker.store.hears_of_new_tasks()).await;
    let first = worker.claim_one().await;
    worker.finish(&first).await;
    until("it has found nothing", async || look(&mut worker, 10).await.tasks.is_empty()).await;
    is_out(harness, 1).await;
    worker
}

async fn is_out(harness: &PostgresHarness, n: i64) {
    until("the offer is out, or not", async || harness.number(OUT).await == n).await;
}

async fn state(rig: &Rig<'_>, id: TaskId) -> State {
    rig.store.task(id).await.unwrap().unwrap().state
}

/// The task that the worker's next claim brings.
async fn brought(worker: &mut Hand<'_>) -> Claimed {
    let mut tasks = Vec::new();
    until("it is brought", async || {
        tasks.extend(look(worker, 10).await.tasks);
        !tasks.is_empty()
    })
    .await;
    assert_eq!(tasks.len(), 1);
    tasks.remove(0)
}

#[tokio::test]
async fn a_lone_task_is_leased_to_a_waiting_worker_as_it_is_added() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    let mut subscriber = Subscriber::at(&harness.schema()).await;
    let mut hints = worker.store.hints();
    for payload in ["", "x", "\u{fffd} and \0", &"y".repeat(3_000)] {
        let sent =
            NewTask { payload: Payload::bytes(payload), priority: -7, max_attempts: Some(3), ..task("a") };
        let id = rig.add(sent.clone()).await;
        assert_eq!(state(&rig, id).await, State::Running);
        assert_eq!(hint(&mut hints).await, Hint::Ready);
        let claimed = brought(&mut worker).await;
        assert_eq!((claimed.id, claimed.worker, claimed.attempt), (id, worker.id, 1));
        assert_eq!((&claimed.payload, claimed.priority, claimed.max_attempts), (&sent.payload, -7, 3));
        assert_eq!(&*claimed.lane, &*rig.store.task(id).await.unwrap().unwrap().lane);
        worker.finish(&claimed).await;
        assert_eq!(state(&rig, id).await, State::Done);
        until("it offers again", async || {
            look(&mut worker, 10).await;
            harness.number(OUT).await == 1
        })
        .await;
    }
    assert_eq!(subscriber.so_far().await, Vec::<String>::new(), "only its worker is told what the task is");
    rig.assert_sound().await;
}

/// Every user who may watch the server sees its statements.
#[tokio::test]
async fn the_channel_of_a_worker_is_in_no_statement() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let worker = offering(&harness, &rig).await;
    let whisper = "SELECT whisper FROM {s}.doorbell WHERE whisper ~ '^windlass_[0-9a-f]{32}$'";
    assert_eq!(harness.number(&format!("SELECT count(*) FROM ({whisper}) AS w")).await, 1);
    let seen = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query ~ ({whisper})"
    );
    assert_eq!(harness.number(&seen).await, 0);
    drop(worker);
}

#[tokio::test]
async fn an_offer_is_taken_once() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    let others = [harness.open_again(|_| {}).await, harness.open_again(|_| {}).await];
    let (one, two) = tokio::join!(others[0].enqueue(vec![task("a")]), others[1].enqueue(vec![task("a")]));
    let mut ids = [one.unwrap()[0].id, two.unwrap()[0].id];
    let mut ran = Vec::new();
    until("both are brought", async || {
        ran.extend(look(&mut worker, 10).await.tasks.iter().map(|task| task.id));
        ran.len() >= 2
    })
    .await;
    ran.sort_unstable();
    ids.sort_unstable();
    assert_eq!(ran, ids);
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_task_that_is_not_fetched_is_handed_back() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let worker = offering(&harness, &rig).await;
    let id = rig.add(task("a")).await;
    assert_eq!(state(&rig, id).await, State::Running);
    until("it is handed back", async || state(&rig, id).await == State::Ready).await;
    let mut other = rig.worker().await;
    let claimed = other.claim_one().await;
    assert_eq!((claimed.id, claimed.attempt, claimed.crashes), (id, 1, 0));
    other.finish(&claimed).await;
    drop(worker);
    let record = rig.store.task(id).await.unwrap().unwrap();
    let results: Vec<_> = record.attempts.iter().map(|attempt| attempt.result).collect();
    assert_eq!(results, [AttemptResult::Released, AttemptResult::Done]);
    rig.assert_sound().await;
}

/// The notification is lost, while the listening connection stays open.
#[tokio::test]
async fn a_task_whose_notification_was_lost_is_handed_back() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    harness.execute(NO_CHANNEL).await;
    let id = rig.add(task("a")).await;
    assert_eq!(state(&rig, id).await, State::Running);
    until("renewals miss the offer", async || {
        worker.renew().await.unwrap();
        state(&rig, id).await == State::Ready
    })
    .await;
    assert_eq!(brought(&mut worker).await.id, id);
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_task_is_handed_back_when_the_listener_is_cut_off() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    harness.execute(NO_CHANNEL).await;
    let id = rig.add(task("a")).await;
    let presence = harness.number("SELECT presence FROM {s}.doorbell WHERE presence IS NOT NULL").await;
    harness
        .execute(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_locks
             WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = {presence}"
        ))
        .await;
    until("it is handed back", async || state(&rig, id).await == State::Ready).await;
    assert_eq!(brought(&mut worker).await.id, id);
    rig.assert_sound().await;
}

/// A task on its way to a worker is not taken from it, whether the worker was notified or not.
#[tokio::test]
async fn a_comparison_of_leases_keeps_a_task_on_its_way() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    harness.execute(NO_CHANNEL).await;
    let id = rig.add(task("a")).await;
    assert_eq!(
        worker.store.reconcile(worker.id, u64::MAX, &[]).await.unwrap().handed_back,
        0,
        "not notified yet"
    );
    assert_eq!(state(&rig, id).await, State::Running);
    worker.store.unclaim(worker.id, worker.claim_no).await.unwrap();
    until("it is handed back", async || state(&rig, id).await == State::Ready).await;
    until("it offers again", async || {
        for task in look(&mut worker, 10).await.tasks {
            worker.finish(&task).await;
        }
        harness.number(OUT).await == 1
    })
    .await;
    rig.add(task("a")).await;
    let claimed = brought(&mut worker).await;
    // A task that waited too long for this worker was handed back, and then claimed like any other.
    if claimed.lease == 1 {
        assert_eq!(
            worker.store.reconcile(worker.id, u64::MAX, &[]).await.unwrap().handed_back,
            0,
            "brought just now"
        );
    }
    rig.assert_sound().await;
}

/// The answer of the claim was lost: the task that it brought is handed back although its lease has another
/// claim number.
#[tokio::test]
async fn an_undone_claim_hands_back_what_an_offer_brought() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    let id = rig.add(task("a")).await;
    let claimed = brought(&mut worker).await;
    worker.store.unclaim(worker.id, worker.claim_no).await.unwrap();
    until("it is handed back", async || state(&rig, id).await == State::Ready).await;
    let settled = worker.settle(vec![(claimed.clone(), windlass_core::Outcome::Done(None))]).await;
    assert_eq!(settled.fenced, [id]);
    assert_eq!(brought(&mut worker).await.id, id);
    rig.assert_sound().await;
}

#[tokio::test]
async fn a_worker_that_drains_or_leaves_offers_nothing() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let worker = offering(&harness, &rig).await;
    let draining = WorkerReport { draining: true, ..WorkerReport::default() };
    worker.store.renew(worker.id, draining).await.unwrap();
    is_out(&harness, 0).await;
    let leaver = offering(&harness, &rig).await;
    leaver.store.retire(leaver.id).await.unwrap();
    is_out(&harness, 0).await;
    let id = rig.add(task("a")).await;
    assert_eq!(state(&rig, id).await, State::Ready);
}

/// Each of these is added in the usual way.
#[tokio::test]
async fn other_enqueues_are_not_leased_by_an_offer() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let worker = offering(&harness, &rig).await;
    let large = NewTask { payload: Payload::bytes("y".repeat(3_001)), ..task("a") };
    let own = worker.store.enqueue(vec![task("a")]).await.unwrap()[0].id;
    let mut ids = vec![own];
    for other in [of_job("j"), large, NewTask { queue: name("elsewhere"), ..task("a") }] {
        ids.push(rig.add(other).await);
    }
    ids.extend(rig.add_many("a", 2).await);
    for id in ids {
        assert_ne!(state(&rig, id).await, State::Running, "{id}");
    }
    assert_eq!(harness.number(OUT).await, 1, "the offer stands");
}

/// The offer is laid out, but its worker may not have the task.
#[tokio::test]
async fn an_offer_of_a_worker_that_may_not_claim_is_not_taken() {
    for prepare in [
        "UPDATE {s}.worker SET expires_at = 0",
        "UPDATE {s}.worker SET ended_at = 1",
        "UPDATE {s}.worker SET min_claim_no = 1000000",
        "UPDATE {s}.doorbell SET armed_until = 0",
        // As if its connection had ended.
        "UPDATE {s}.doorbell SET presence = presence + 1",
        "INSERT INTO {s}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload)
         SELECT 7, nextval('{s}.seq'), min(id), 0, 1, 1, 10, 2, 1, 0, '1' FROM {s}.lane",
        "INSERT INTO {s}.task (id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, worker, claim_no,
           suspect, claimed_at)
         SELECT 7, nextval('{s}.seq'), min(l.id), 0, 1, 1, 10, 2, 2, 0, '1', min(w.id), 0, -1, {s}.now_ms() FROM {s}.lane l, {s}.worker w",
    ] {
        let harness = trusting();
        let rig = Rig::open(&harness).await;
        let worker = offering(&harness, &rig).await;
        harness.execute(prepare).await;
        let id = rig.add(task("a")).await;
        assert_eq!(state(&rig, id).await, State::Ready, "{prepare}");
        drop(worker);
    }
}

#[tokio::test]
async fn an_offer_ends_with_the_process_that_made_it() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let worker = offering(&harness, &rig).await;
    worker.store.close().await.unwrap();
    until("the process is not connected", async || {
        harness
            .number(
                "SELECT count(*) FROM pg_locks AS l, {s}.doorbell AS d WHERE l.locktype = 'advisory'
            AND (l.classid::bigint << 32 | l.objid::bigint) = d.presence",
            )
            .await
            == 0
    })
    .await;
    assert_eq!(harness.number(OUT).await, 1, "it was not taken back");
    let id = rig.add(task("a")).await;
    assert_eq!(state(&rig, id).await, State::Ready);
}

/// The process has no offer under the number by which the task was leased.
#[tokio::test]
async fn an_unexpected_notification_hands_the_task_back() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    harness.execute("UPDATE {s}.doorbell SET claim_no = claim_no + 1000").await;
    let id = rig.add(task("a")).await;
    until("it is handed back", async || state(&rig, id).await == State::Ready).await;
    assert_eq!(brought(&mut worker).await.id, id);
    rig.assert_sound().await;
}

/// A worker that gets the task of its offer is told to claim again if more tasks were hinted.
#[tokio::test]
async fn an_offered_task_hides_no_other_task() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    let mut hints = worker.store.hints();
    let mut ids = vec![rig.add(task("a")).await];
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    let more = worker.store.enqueue(vec![task("a"); 2]).await.unwrap();
    ids.extend(more.iter().map(|task| task.id));
    let mut ran = Vec::new();
    loop {
        let answer = look(&mut worker, 10).await;
        ran.extend(answer.tasks.iter().map(|task| task.id));
        if answer.rest != Rest::More {
            break;
        }
    }
    ran.sort_unstable();
    ids.sort_unstable();
    assert_eq!(ran, ids);
}

#[tokio::test]
async fn a_worker_that_an_offer_has_filled_is_not_notified() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    let mut hints = worker.store.hints();
    let id = rig.add(task("a")).await;
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    assert_eq!(look(&mut worker, 1).await.tasks[0].id, id);
    let armed = "SELECT count(*) FROM {s}.doorbell WHERE armed_until > {s}.now_ms()";
    until("its doorbell is disarmed", async || harness.number(armed).await == 0).await;
}

/// Every enqueue would read old versions of rows that a held snapshot keeps.
#[tokio::test]
async fn a_grown_doorbell_table_takes_no_offers() {
    let harness = trusting();
    let rig = Rig::open(&harness).await;
    let mut worker = offering(&harness, &rig).await;
    harness
        .execute(
            "INSERT INTO {s}.doorbell (listener, armed_until, lanes)
             SELECT -n, {s}.now_ms(), '{7,7,7,7,7,7,7,7,7,7,7,7,7}' FROM generate_series(1, 20000) AS n",
        )
        .await;
    let id = rig.add(task("a")).await;
    assert_eq!(state(&rig, id).await, State::Running, "the offer of before is taken");
    let claimed = brought(&mut worker).await;
    worker.finish(&claimed).await;
    for _ in 0..3 {
        look(&mut worker, 10).await;
        let id = rig.add(task("a")).await;
        assert_eq!(state(&rig, id).await, State::Ready);
        let claimed = brought(&mut worker).await;
        worker.finish(&claimed).await;
    }
}
