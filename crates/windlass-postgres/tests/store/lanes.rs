//! Lanes that are retired while other processes go on to use their numbers.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use windlass_conformance::{
    Case,
    cases::rig::{Rig, in_queue, keyed, name},
};
use windlass_core::{
    Demand, NewTask, NewWorker, Outcome, Rules, SettleBatch, SettleItem, Source, Store, TaskId, WorkerId,
    lanes::LOOK_EVERY, settle, store::Retention,
};
use windlass_postgres::{Notify, PostgresStore};

use crate::{gate_races::Check, support::PostgresHarness};

const IN_USE: &str = "SELECT count(*) FROM {s}.lane WHERE NOT retired";
const RETIRED: &str = "SELECT count(*) FROM {s}.lane WHERE retired";

/// Rules of this store that mutants name.
pub const CHECKS: &[(&str, Check)] = &[
    ("own::a_number_that_was_read_before_brings_its_lane_back", |harness| {
        Box::pin(a_number_that_was_read_before_brings_its_lane_back(harness))
    }),
    ("own::a_look_brings_a_lane_back_whose_task_came_unseen", |harness| {
        Box::pin(a_look_brings_a_lane_back_whose_task_came_unseen(harness))
    }),
];

async fn look(rig: &Rig<'_>) {
    rig.advance(LOOK_EVERY).await;
    rig.store.retain(&Retention::default()).await.unwrap();
}

/// The caller hears nothing and never reads the lanes again.
async fn deaf(harness: &PostgresHarness) -> Arc<PostgresStore> {
    harness.open_again(|options| options.notify = Notify::Off).await
}

async fn a_number_that_was_read_before_brings_its_lane_back(harness: &PostgresHarness) {
    let rig = Rig::with(harness, Rules { lanes_max: 4, ..Rules::default() }).await;
    let caller = deaf(harness).await;
    let with_key = |key: &str| NewTask { queue: name("keyed"), ..keyed(key) };
    let batch = vec![in_queue("a", "many"), in_queue("b", "many")];
    let mut added = BTreeSet::new();
    for round in ["1", "2", "3"] {
        for tasks in [vec![in_queue("a", "one")], batch.clone(), vec![with_key(round)]] {
            added.extend(caller.enqueue(tasks).await.unwrap().iter().map(|answer| answer.id));
        }
        assert_eq!(harness.number(IN_USE).await, 4, "round {round}");
        // A worker that comes now reads the lanes in use, and finds all tasks.
        let mut worker = rig.worker().await;
        for task in worker.claim(100).await {
            assert!(added.remove(&task.id));
            worker.finish(&task).await;
        }
        assert_eq!(added, BTreeSet::new(), "round {round}");
        for _ in 0..2 {
            look(&rig).await;
        }
        assert_eq!(harness.number(IN_USE).await, 0, "round {round}");
    }
}

#[tokio::test]
async fn a_cached_number_brings_its_lane_back() {
    a_number_that_was_read_before_brings_its_lane_back(&PostgresHarness::new()).await;
}

#[tokio::test]
async fn every_way_to_enqueue_works_without_notifications() {
    let harness = PostgresHarness::new().with(|mut options| {
        options.notify = Notify::Off;
        options
    });
    let case = Case::named("lanes::every_way_to_enqueue_brings_a_lane_back").unwrap();
    (case.run)(&harness).await;
}

/// A transaction may begin before one look and commit after the next: then no statement could see what the
/// looks noted.
async fn a_look_brings_a_lane_back_whose_task_came_unseen(harness: &PostgresHarness) {
    let rig = Rig::with(harness, Rules { lanes_max: 2, ..Rules::default() }).await;
    let id = rig.add(in_queue("a", "q1")).await;
    harness.execute("UPDATE {s}.lane SET retired = true, idle_since = 0").await;
    look(&rig).await;
    assert_eq!((harness.number(IN_USE).await, harness.number(RETIRED).await), (1, 0));
    assert_eq!(rig.worker().await.claim_ids(10).await, [id]);
}

#[tokio::test]
async fn a_look_finds_tasks_that_came_unseen() {
    a_look_brings_a_lane_back_whose_task_came_unseen(&PostgresHarness::new()).await;
}

/// A worker whose lease does not run out while the test moves the clock.
struct Runner {
    store: Arc<PostgresStore>,
    id: WorkerId,
    claim_no: u64,
    finished: BTreeSet<TaskId>,
}

impl Runner {
    async fn new(harness: &PostgresHarness) -> Self {
        Self::of(harness.open_again(|_| {}).await).await
    }

    async fn of(store: Arc<PostgresStore>) -> Self {
        let worker = NewWorker {
            host: "host".to_owned(),
            pid: 1,
            version: "0".to_owned(),
            kinds: vec![name("a")],
            queues: Vec::new(),
            slots: 100,
            lease_ttl: Duration::from_hours(100_000),
        };
        let id = store.register(worker).await.unwrap();
        Self { store, id, claim_no: 0, finished: BTreeSet::new() }
    }

    /// Runs what it finds; answers how many tasks that were.
    async fn turn(&mut self) -> usize {
        let lanes = self.store.lanes(&[name("a")], &[]).await.unwrap();
        self.claim_no += 1;
        let lanes = lanes.iter().map(|lane| lane.id).collect();
        let answer = self.store.claim(&[Demand::new(self.id, self.claim_no, lanes, 100)]).await.unwrap();
        if answer.tasks.is_empty() {
            return 0;
        }
        let end =
            |task| SettleItem::new(task, settle(task, Outcome::Done(None), answer.now, self.store.rules()));
        let items = answer.tasks.iter().map(end).collect();
        let batch = SettleBatch { worker: self.id, settler_no: 0, batch_no: self.claim_no, items };
        let settled = self.store.settle(Arc::new(batch)).await.unwrap();
        assert_eq!(settled.fenced, []);
        for task in &answer.tasks {
            assert!(self.finished.insert(task.id), "{} ran twice", task.id);
        }
        answer.tasks.len()
    }
}

/// Adds tasks to lanes by numbers that were read once; answers the ids.
async fn call(caller: Arc<PostgresStore>, who: u64, rounds: u64) -> BTreeSet<TaskId> {
    let mut ids = BTreeSet::new();
    for round in 0..rounds {
        let queue = |step: u64| format!("q{}", (who * 7 + round * 13 + step * 5) % LANES);
        let mut tasks = vec![in_queue("a", &queue(0))];
        match round % 3 {
            1 => tasks.extend([in_queue("a", &queue(1)), in_queue("a", &queue(2))]),
            2 => tasks = vec![NewTask { queue: name(&queue(0)), ..keyed(&format!("{who} {round}")) }],
            _ => {}
        }
        ids.extend(caller.enqueue(tasks).await.unwrap().iter().map(|answer| answer.id));
    }
    ids
}

/// Lanes of the race.
const LANES: u64 = 40;

/// Callers that never read the lanes again, a worker, and a leader whose looks follow each other at once.
async fn tasks_and_looks_at_once_lose_nothing(harness: &PostgresHarness, rounds: u64) {
    let rig = Rig::with(harness, Rules { lanes_max: 50, ..Rules::default() }).await;
    let all = (0..LANES).map(|lane| in_queue("a", &format!("q{lane}"))).collect::<Vec<_>>();
    let mut added: BTreeSet<TaskId> = rig.add_all(all).await.into_iter().collect();
    let mut runner = Runner::new(harness).await;
    let (is_over, back) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let mut callers = Vec::new();
    for who in 0..3 {
        callers.push(tokio::spawn(call(deaf(harness).await, who, rounds)));
    }
    let over = Arc::clone(&is_over);
    let run = async {
        while !over.load(Ordering::Relaxed) {
            runner.turn().await;
        }
        runner
    };
    let lead = async {
        let mut before = 0;
        while !is_over.load(Ordering::Relaxed) {
            look(&rig).await;
            let retired = harness.number(RETIRED).await;
            back.fetch_add(u64::try_from((before - retired).max(0)).unwrap(), Ordering::Relaxed);
            before = retired;
        }
    };
    let end = async {
        for caller in callers {
            added.extend(caller.await.unwrap());
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let (mut runner, (), ()) = tokio::join!(run, lead, end);
    assert!(back.load(Ordering::Relaxed) > 0, "no lane was retired and came back");
    // Of a transaction that missed both looks the next look finds the tasks.
    look(&rig).await;
    let mut last = Runner::new(harness).await;
    while last.turn().await > 0 {}
    runner.finished.append(&mut last.finished);
    assert_eq!(runner.finished, added, "each task ran once");
    assert_eq!(harness.number("SELECT count(*) FROM {s}.task").await, 0);
    rig.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_tasks_race_with_looks_and_none_is_lost() {
    let rounds = if std::env::var_os("WINDLASS_LONG").is_some() { 10_000 } else { 1_000 };
    tasks_and_looks_at_once_lose_nothing(&PostgresHarness::new(), rounds).await;
}

/// One lane is retired and another one is made between two looks of a claim: as many are in use as before.
#[tokio::test]
async fn a_swap_of_lanes_is_seen_without_notifications() {
    let harness = PostgresHarness::new();
    let rig = Rig::with(&harness, Rules { lanes_max: 4, ..Rules::default() }).await;
    let first = rig.add(in_queue("a", "old")).await;
    let mut runner = Runner::of(deaf(&harness).await).await;
    while runner.turn().await == 0 {}
    assert_eq!(runner.finished, BTreeSet::from([first]));
    harness.execute("UPDATE {s}.lane SET retired = true, idle_since = 0").await;
    let second = rig.add(in_queue("a", "new")).await;
    assert_eq!(harness.number(IN_USE).await, 1);
    // The first claim looks and sees that its lanes are not those of the store.
    for _ in 0..2 {
        runner.turn().await;
    }
    assert_eq!(runner.finished, BTreeSet::from([first, second]));
}
