//! Idle workers are notified of new tasks, and busy ones are not.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, NoTls};
use windlass_conformance::cases::rig::{Hand, Rig, lease_of, task};
use windlass_core::{Hint, Hints, State, Store};
use windlass_postgres::{Notify, Options};

use crate::{
    support::{self, PostgresHarness},
    wait::until,
};

/// A session that receives every notification of a store.
pub struct Subscriber {
    client: tokio_postgres::Client,
    channel: String,
    received: mpsc::UnboundedReceiver<String>,
}

impl Subscriber {
    pub async fn at(schema: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(&support::url(), NoTls).await.unwrap();
        let (tell, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(note) = message {
                    let _ = tell.send(note.payload().to_owned());
                }
            }
        });
        let channel = format!("windlass_{schema}");
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await.unwrap();
        Self { client, channel, received }
    }

    /// Everything that was sent before now: notifications keep the order of their commits.
    pub async fn so_far(&mut self) -> Vec<String> {
        self.client.execute("SELECT pg_notify($1, 'until here')", &[&self.channel]).await.unwrap();
        let mut all = Vec::new();
        loop {
            match self.received.recv().await.unwrap() {
                text if text == "until here" => return all,
                text => all.push(text),
            }
        }
    }
}

pub async fn hint(hints: &mut Box<dyn Hints>) -> Hint {
    tokio::time::timeout(Duration::from_secs(30), hints.next()).await.unwrap()
}

/// A worker that has just found no more tasks, with its doorbell armed.
pub async fn idle<'h>(rig: &Rig<'h>) -> Hand<'h> {
    let mut worker = rig.worker().await;
    until("it listens", async || worker.store.hears_of_new_tasks()).await;
    worker.claim(10).await;
    worker
}

fn listener(harness: &PostgresHarness) -> String {
    format!("SELECT listener FROM {}.doorbell WHERE armed_until > {0}.now_ms()", harness.schema())
}

#[tokio::test]
async fn an_enqueue_elsewhere_notifies_an_idle_worker() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let worker = idle(&rig).await;
    let mut subscriber = Subscriber::at(&harness.schema()).await;
    let mut hints = worker.store.hints();
    rig.add(task("a")).await;
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    let number = harness.number(&listener(&harness)).await;
    assert_eq!(subscriber.so_far().await, [number.to_string()]);
    rig.store.enqueue(vec![task("a"); 5]).await.unwrap();
    assert_eq!(subscriber.so_far().await, [number.to_string()], "one notification for a batch");
}

#[tokio::test]
async fn no_worker_is_notified_while_all_are_busy() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add_many("a", 30).await;
    let mut worker = idle(&rig).await;
    worker.claim(10).await;
    let mut subscriber = Subscriber::at(&harness.schema()).await;
    for _ in 0..20 {
        rig.add(task("a")).await;
    }
    assert_eq!(subscriber.so_far().await, Vec::<String>::new());
    // The first claim that gets fewer tasks than it asked for arms the doorbell again.
    assert_eq!(worker.claim(100).await.len(), 30);
    rig.add(task("a")).await;
    assert_eq!(subscriber.so_far().await.len(), 1);
}

#[tokio::test]
async fn a_worker_of_this_process_needs_no_notification() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let worker = idle(&rig).await;
    let mut subscriber = Subscriber::at(&harness.schema()).await;
    let mut hints = worker.store.hints();
    worker.store.enqueue(vec![task("a")]).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    assert_eq!(subscriber.so_far().await, Vec::<String>::new());
}

/// A process whose worker has left must no longer count on an idle worker of its own.
#[tokio::test]
async fn a_process_whose_worker_left_notifies_others() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let leaver = idle(&rig).await;
    leaver.store.retire(leaver.id).await.unwrap();
    let stayer = idle(&rig).await;
    let mut hints = stayer.store.hints();
    leaver.store.enqueue(vec![task("a")]).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Ready);
}

#[tokio::test]
async fn a_listener_that_was_cut_off_listens_again() {
    let program = support::schema_name();
    let url = format!("{}?application_name={program}", support::url());
    let harness = PostgresHarness::new().through(&url);
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let worker = idle(&rig).await;
    rig.store.close().await.unwrap();
    let mut hints = worker.store.hints();
    let session = format!("FROM pg_stat_activity WHERE application_name = '{program} listen'");
    until("only the worker listens", async || {
        harness.number(&format!("SELECT count(*) {session}")).await == 1
    })
    .await;
    let before = harness.number(&format!("SELECT pid::bigint {session}")).await;
    harness.execute(&format!("SELECT pg_terminate_backend({before})")).await;
    assert_eq!(hint(&mut hints).await, Hint::Lanes, "the worker is told to look for what it missed");
    assert_eq!(hint(&mut hints).await, Hint::Ready);
    until("it listens again", async || worker.store.hears_of_new_tasks()).await;
    assert_ne!(harness.number(&format!("SELECT pid::bigint {session}")).await, before);
    // Notifications reach it again.
    let mut worker = worker;
    worker.claim(10).await;
    let other = harness.open_again(|_| {}).await;
    other.enqueue(vec![task("a")]).await.unwrap();
    assert_eq!(hint(&mut hints).await, Hint::Ready);
}

/// Every enqueue reads all doorbells.
#[tokio::test]
async fn doorbells_unused_for_a_day_are_deleted() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    harness
        .execute(
            "INSERT INTO {s}.doorbell (listener, armed_until, lanes)
             SELECT -n, {s}.now_ms() - 86300000 - n * 100001, '{1}' FROM generate_series(0, 9) AS n",
        )
        .await;
    let worker = idle(&rig).await;
    assert_eq!(harness.number("SELECT count(*) FROM {s}.doorbell WHERE listener <= 0").await, 1);
    assert_eq!(harness.number("SELECT count(*) FROM {s}.doorbell WHERE listener > 0").await, 1);
    // The doorbell of a busy worker stays.
    let mut busy = worker;
    rig.add_many("a", 10).await;
    busy.claim(10).await;
    let idle = idle(&rig).await;
    assert_eq!(harness.number("SELECT count(*) FROM {s}.doorbell WHERE listener > 0").await, 2);
    drop((busy, idle));
}

#[tokio::test]
async fn a_store_that_does_not_listen_says_so() {
    let harness = PostgresHarness::new().with(|options| Options { notify: Notify::Off, ..options });
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    assert_eq!(worker.claim(10).await.len(), 1);
    assert!(!worker.store.hears_of_new_tasks());
    assert_eq!(harness.number("SELECT count(*) FROM {s}.doorbell").await, 0, "it asks for no notification");
}

#[tokio::test]
async fn a_request_to_end_reaches_the_worker_of_another_process() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let mut worker = rig.worker().await;
    until("it listens", async || worker.store.hears_of_new_tasks()).await;
    let claimed = worker.claim_one().await;
    let mut hints = worker.store.hints();
    assert_eq!(rig.cancel(claimed.id).await, Ok(State::Running));
    assert_eq!(hint(&mut hints).await, Hint::Cancel(lease_of(&claimed), "not wanted".to_owned()));
}

#[tokio::test]
async fn new_lanes_and_resumed_queues_are_told_to_all_workers() {
    let harness = PostgresHarness::new();
    let rig = Rig::open(&harness).await;
    rig.add(task("a")).await;
    let other: Arc<dyn Store> = harness.open_again(|_| {}).await;
    until("it listens", async || other.hears_of_new_tasks()).await;
    let mut subscriber = Subscriber::at(&harness.schema()).await;
    rig.add(task("b")).await;
    assert_eq!(subscriber.so_far().await, ["lanes"]);
    let queue = windlass_conformance::cases::rig::name("default");
    rig.store.set_queue_paused(&queue, true).await.unwrap();
    let mut hints = other.hints();
    rig.store.set_queue_paused(&queue, false).await.unwrap();
    assert_eq!(subscriber.so_far().await, ["*"]);
    until("it is told", async || hint(&mut hints).await == Hint::Ready).await;
}

/// Tasks of a caller's own transaction are held or wait when it commits: the worker that is notified has
/// admission pass them.
#[tokio::test]
async fn a_commit_of_gated_tasks_notifies_an_idle_worker() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let harness = PostgresHarness::new();
        let rig = Rig::open(&harness).await;
        rig.add(task("a")).await;
        let mut worker = idle(&rig).await;
        let mut hints = worker.store.hints();
        let db = harness.client().await;
        for gates in ["job => 'j'", "workflow => 'w'", "job => 'j', workflow => 'w'"] {
            assert_eq!(worker.claim_ids(10).await, []);
            let enqueue = format!("SELECT \"{}\".enqueue('a', {gates})", harness.schema());
            db.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; {enqueue}; COMMIT")).await.unwrap();
            let mut claimed = worker.claim(10).await;
            while claimed.is_empty() {
                hint(&mut hints).await;
                claimed = worker.claim(10).await;
            }
            worker.finish(&claimed[0]).await;
        }
        rig.assert_sound().await;
    }
}
