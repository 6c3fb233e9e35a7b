//! Two servers on one PostgreSQL: each has its own connections, its own push and its own workers.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use windlass_conformance::Harness;
use windlass_core::{LeaseRef, Name, NewTask, Rules, State, Store, TaskId, task::AttemptResult};

use crate::{
    harness::Served,
    postgres::support::PostgresHarness,
    push::{Hand, all_done, task, told},
};

/// Most time that a server sleeps before it polls.
const POLL: Duration = Duration::from_secs(1);

/// A store, and two servers on it, as two processes would have them.
struct Two {
    /// Owns the schema, and opens it again.
    harness: PostgresHarness,
    store: Arc<dyn Store>,
    first: Served,
    second: Served,
}

impl Two {
    async fn start() -> Self {
        let harness = PostgresHarness::new();
        let store = harness.open(Rules::default()).await;
        let first = Served::start(harness.connect(&store).await).await;
        let second = Served::start(harness.connect(&store).await).await;
        Self { harness, store, first, second }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_pushed_to_a_worker_of_another_server() {
    let two = Two::start().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let hand = Hand::start(&two.second.url, 4, told("one", &started, usize::MAX >> 3).0).await;
    let client = two.first.connect().await;
    let mut fastest = Duration::MAX;
    for _ in 0..20 {
        let asked = Instant::now();
        let id = client.enqueue(vec![task("a")]).await.unwrap()[0].id;
        assert_eq!(starts.recv().await.unwrap().1, id);
        fastest = fastest.min(asked.elapsed());
        all_done(&*two.store, &[id]).await;
    }
    // A server without a hint polls after this time. Some tasks may arrive shortly before a poll, so the
    // fastest of many counts: less than half of it cannot depend on the speed of the machine.
    assert!(fastest < POLL / 2, "found by looking: the fastest took {fastest:?}");
    hand.end().await;
    two.first.end().await;
    two.second.end().await;
    assert_eq!(two.store.audit().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_workflows_keep_their_order_over_two_servers() {
    const FLOWS: usize = 3;
    const STEPS: usize = 10;
    let two = Two::start().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let hands = [
        Hand::start(&two.first.url, 4, told("one", &started, usize::MAX >> 3).0).await,
        Hand::start(&two.second.url, 4, told("two", &started, usize::MAX >> 3).0).await,
    ];
    let clients = [two.first.connect().await, two.second.connect().await];
    let mut steps: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut order: Vec<Vec<TaskId>> = vec![Vec::new(); FLOWS];
    for step in 0..STEPS {
        for (flow, order) in order.iter_mut().enumerate() {
            let workflow = Some(Name::new("workflow", format!("w{flow}")).unwrap());
            let client = &clients[(step + flow) % 2];
            let id = client.enqueue(vec![NewTask { workflow, ..task("a") }]).await.unwrap()[0].id;
            steps.insert(id, flow);
            order.push(id);
        }
    }
    let (mut ran, mut places): (Vec<Vec<TaskId>>, Vec<&str>) = (vec![Vec::new(); FLOWS], Vec::new());
    for _ in 0..FLOWS * STEPS {
        let (place, id) = starts.recv().await.unwrap();
        ran[steps[&id]].push(id);
        places.push(place);
    }
    assert_eq!(ran, order);
    assert!(places.contains(&"one") && places.contains(&"two"), "both had a part: {places:?}");
    all_done(&*two.store, &order.concat()).await;
    for hand in hands {
        hand.end().await;
    }
    two.first.end().await;
    two.second.end().await;
    assert_eq!(two.store.audit().await.unwrap(), []);
}

/// Adds a task and waits for its start. Returns the task and its lease.
async fn start(store: &dyn Store, starts: &mut mpsc::UnboundedReceiver<(&'static str, TaskId)>) -> LeaseRef {
    let id = store.enqueue(vec![task("a")]).await.unwrap()[0].id;
    assert_eq!(starts.recv().await.unwrap().1, id);
    LeaseRef { id, lease: store.task(id).await.unwrap().unwrap().lease }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_its_leases_when_its_server_dies() {
    let two = Two::start().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let (handler, go_on) = told("one", &started, 0);
    // The worker connects to one of these three servers.
    let third = Served::start(two.harness.connect(&two.store).await).await;
    let url = format!("{},{},{}", two.first.url, two.second.url, third.url);
    let hand = Hand::start(&url, 5, handler).await;
    let mut runs = vec![start(&*two.store, &mut starts).await];
    // The worker is connected to one of the three. Two of them die without closing their connections.
    for server in [two.first, two.second] {
        server.die().await;
        runs.push(start(&*two.store, &mut starts).await);
    }
    for run in &runs {
        let task = two.store.task(run.id).await.unwrap().unwrap();
        assert_eq!((task.state, task.lease), (State::Running, run.lease), "nothing was handed back");
    }
    go_on.add_permits(runs.len());
    all_done(&*two.store, &runs.iter().map(|run| run.id).collect::<Vec<_>>()).await;
    assert!(starts.try_recv().is_err(), "each ran once");
    for run in &runs {
        let task = two.store.task(run.id).await.unwrap().unwrap();
        // A server may have claimed the task while it died. Such an attempt was released before a worker saw
        // it.
        let ran = task.attempts.iter().filter(|attempt| attempt.result != AttemptResult::Released);
        let ran: Vec<_> = ran.map(|attempt| (attempt.attempt, attempt.lease)).collect();
        assert_eq!(ran, [(1, run.lease)], "each ran once: {task:?}");
    }
    assert_eq!(two.store.workers().await.unwrap().len(), 1, "under one registration");
    hand.end().await;
    third.end().await;
    assert_eq!(two.store.audit().await.unwrap(), []);
}
