//! Bulk runs of several servers on one store, with a clock of the test.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time::sleep};
use windlass_conformance::MemoryStore;
use windlass_core::{
    NewTask, Outcome, Payload, Rules, Source, State, Store, TaskId, TaskRecord,
    operators::StillRuns,
    store::{Filter, PAGE_MAX},
    time::ManualClock,
};
use windlass_server::{
    Operations,
    access::Caller,
    api::{ErrorCode, RunAction, RunRequest, RunState, RunView},
};

use crate::harness::Hand;

const SECOND: Duration = Duration::from_secs(1);
/// The state of a task that was retried, until a worker promotes what is due.
const RETRIED: State = State::Scheduled;

/// A store, and a worker whose tasks the test ends.
struct Fleet {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    worker: Hand,
}

/// A server that works off runs.
struct Server {
    operations: Operations,
    stop: oneshot::Sender<()>,
    worker: JoinHandle<()>,
}

impl Server {
    /// The server dies.
    fn kill(self) {
        self.worker.abort();
    }

    /// The server ends in order.
    async fn end(self) {
        self.stop.send(()).unwrap();
        self.worker.await.unwrap();
    }
}

impl Fleet {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new(clock.clone(), Rules::default()));
        let worker = Hand::register(&store, &["a"]).await;
        Self { store, clock, worker }
    }

    fn server(&self) -> Server {
        let operations = Operations::new(self.store.clone());
        let (stop, stopped) = oneshot::channel();
        let works = operations.clone();
        let worker = tokio::spawn(async move {
            works.work_runs(async { drop(stopped.await) }).await;
        });
        Server { operations, stop, worker }
    }

    /// Adds tasks that die at once.
    async fn dead(&self, n: usize) -> Vec<TaskId> {
        let task = NewTask::new("a", Payload::bytes(*b"x")).unwrap();
        let added = self.store.enqueue(vec![task; n]).await.unwrap();
        for _ in 0..n {
            self.worker.end(Outcome::dead("no")).await;
        }
        self.clock.advance(SECOND);
        added.into_iter().map(|task| task.id).collect()
    }

    /// Lets time pass, for the store and for the servers.
    async fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            self.clock.advance(SECOND);
            sleep(SECOND).await;
        }
    }

    /// The tasks that were retried run, and die again.
    async fn die_again(&self) -> u64 {
        let retried = self.count(RETRIED).await;
        self.store.promote_due(PAGE_MAX).await.unwrap();
        for _ in 0..retried {
            self.worker.end(Outcome::dead("again")).await;
        }
        retried
    }

    async fn tasks(&self, state: State) -> Vec<TaskRecord> {
        let filter = Filter { state: Some(state), ..Filter::default() };
        self.store.tasks(&filter, None, PAGE_MAX).await.unwrap().tasks
    }

    async fn count(&self, state: State) -> u64 {
        self.tasks(state).await.len() as u64
    }
}

async fn start(server: &Server, seconds: u64) -> RunView {
    let over_ms = Some(seconds * 1_000);
    let request = RunRequest { action: RunAction::Retry, over_ms, ..RunRequest::default() };
    server.operations.start_run(&Caller::Anybody, request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_of_two_servers_works_a_run_off_at_its_pace() {
    let fleet = Fleet::new().await;
    fleet.dead(100).await;
    let (one, two) = (fleet.server(), fleet.server());
    let run = start(&one, 100).await;
    assert_eq!((run.matched, run.more, run.changed), (100, false, 0));
    fleet.pass(10).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert!((10..=11).contains(&seen.changed), "{seen:?}");
    assert_eq!(fleet.count(RETRIED).await, seen.changed);
    fleet.pass(95).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed, seen.refused), (RunState::Done, 100, 0));
    assert_eq!((fleet.count(RETRIED).await, fleet.count(State::Dead).await), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn another_server_goes_on_when_the_first_one_dies() {
    let fleet = Fleet::new().await;
    fleet.dead(100).await;
    let (one, two) = (fleet.server(), fleet.server());
    let run = start(&one, 100).await;
    fleet.pass(10).await;
    one.kill();
    let at_death = fleet.count(RETRIED).await;
    fleet.pass(15).await;
    assert_eq!(fleet.count(RETRIED).await, at_death, "it is not known yet that the server is dead");
    fleet.pass(15).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert!(seen.changed > at_death, "{seen:?}");
    assert!(seen.changed < at_death + 15, "what was not done meanwhile does not come at once: {seen:?}");
    fleet.pass(100).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed), (RunState::Done, 100));
    assert_eq!(fleet.count(RETRIED).await, 100);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_leaves_its_runs_to_another_at_once() {
    let fleet = Fleet::new().await;
    fleet.dead(10).await;
    let (one, two) = (fleet.server(), fleet.server());
    let run = start(&one, 10).await;
    fleet.pass(2).await;
    one.end().await;
    fleet.pass(16).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed), (RunState::Done, 10));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_leaves_the_rest_as_it_was() {
    let fleet = Fleet::new().await;
    fleet.dead(100).await;
    let (one, two) = (fleet.server(), fleet.server());
    let run = start(&one, 100).await;
    fleet.pass(10).await;
    let stopped = two.operations.stop_run(&Caller::Anybody, run.id).await.unwrap();
    assert_eq!((stopped.state, stopped.stopped_by.as_deref()), (RunState::Stopped, Some("anybody")));
    fleet.pass(60).await;
    let seen = one.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed), (RunState::Stopped, stopped.changed));
    assert_eq!(fleet.count(RETRIED).await, stopped.changed);
    assert_eq!(fleet.count(State::Dead).await, 100 - stopped.changed);
    let again = one.operations.stop_run(&Caller::Anybody, run.id).await.unwrap_err();
    assert_eq!(again.code, ErrorCode::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_run_retries_a_task_that_dies_again_only_once() {
    let fleet = Fleet::new().await;
    fleet.dead(4).await;
    let server = fleet.server();
    let run = start(&server, 8).await;
    let mut deaths = 0;
    for _ in 0..20 {
        fleet.pass(1).await;
        deaths += fleet.die_again().await;
    }
    let seen = server.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed, deaths), (RunState::Done, 4, 4));
    assert_eq!(fleet.count(State::Dead).await, 4);
}

/// A server that dies between a step and the save of its record has the step repeated by the next one.
#[tokio::test(start_paused = true)]
async fn a_repeated_step_leaves_out_tasks_that_died_since() {
    let fleet = Fleet::new().await;
    let ids = fleet.dead(4).await;
    let one = fleet.server();
    let run = start(&one, 4_000).await;
    let text = fleet.store.operators().run(run.id).await.unwrap().unwrap().text;
    fleet.pass(1).await;
    one.kill();
    let retried = fleet.tasks(RETRIED).await.pop().unwrap();
    assert_eq!(retried.id, ids[3], "the newest first");
    fleet.die_again().await;
    let row = fleet.store.operators().run(run.id).await.unwrap().unwrap();
    fleet.store.operators().save_run(run.id, row.version, StillRuns::Yes, &text).await.unwrap().unwrap();
    let two = fleet.server();
    fleet.pass(60).await;
    let seen = two.operations.run(run.id).await.unwrap();
    assert_eq!(seen.changed, 1, "{seen:?}");
    let ready: Vec<_> = fleet.tasks(RETRIED).await.iter().map(|task| task.id).collect();
    assert_eq!(ready, [ids[2]], "the task that died again stays dead");
}

#[tokio::test(start_paused = true)]
async fn a_run_leaves_out_tasks_that_came_after_its_start() {
    let fleet = Fleet::new().await;
    fleet.dead(3).await;
    let server = fleet.server();
    let run = start(&server, 30).await;
    fleet.pass(2).await;
    fleet.dead(2).await;
    fleet.pass(60).await;
    let seen = server.operations.run(run.id).await.unwrap();
    assert_eq!((seen.state, seen.changed), (RunState::Done, 3));
    assert_eq!(fleet.count(State::Dead).await, 2);
}
