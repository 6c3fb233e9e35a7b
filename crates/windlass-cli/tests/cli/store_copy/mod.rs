//! `windlass store copy`: copies a whole store from a file to a real PostgreSQL.

mod property;
mod source;

use std::{path::Path, sync::Arc};

use windlass_core::{Error, Source as _, State, Store, TaskId};
use windlass_postgres::PostgresStore;

use self::source::{Hand, add, done, fill, keyed, name, open_file, task};
use crate::support::{Said, command, windlass};

const MANY: u32 = 10_000;

/// A schema of the test's own on the shared server.
struct Target {
    url: String,
    schema: String,
}

impl Target {
    fn new(name: &str) -> Self {
        let schema = format!("copy_{name}_{}", std::process::id());
        Self { url: windlass_scratch::shared_url().unwrap(), schema }
    }

    fn options(&self) -> windlass_postgres::Options {
        windlass_postgres::Options {
            schema: windlass_postgres::Schema::new(&self.schema).unwrap(),
            ..windlass_postgres::Options::default()
        }
    }

    fn location(&self) -> windlass_postgres::Location {
        windlass_postgres::Location::parse(&self.url).unwrap()
    }

    async fn open(&self) -> Arc<PostgresStore> {
        PostgresStore::open(&self.location(), self.options()).await.unwrap()
    }

    /// The arguments that copy the store of a folder to this schema.
    fn arguments(&self) -> Vec<&str> {
        let place = ["--to", self.url.as_str(), "--schema", self.schema.as_str()];
        ["store", "copy", "--from", "sqlite:windlass.db"].into_iter().chain(place).collect()
    }

    /// Copies the store of a folder to this schema.
    fn copy(&self, folder: &Path, more: &[&str]) -> Said {
        let mut all = self.arguments();
        all.extend(more);
        windlass(folder, &all)
    }

    /// The number that a statement returns; `{s}` stands for the schema.
    fn count(&self, text: &str) -> u64 {
        self.count_or_conflict(text).unwrap()
    }

    /// The same; `None` if the server refuses the statement.
    fn count_or_conflict(&self, text: &str) -> Option<u64> {
        let said = windlass_scratch::psql(&self.url, &text.replace("{s}", &self.schema));
        Some(said.ok()?.trim().parse().unwrap())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ =
            windlass_scratch::psql(&self.url, &format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.schema));
    }
}

fn bytes(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let read = |file: &str| std::fs::read(folder.join(file)).unwrap_or_default();
    (read("windlass.db"), read("windlass.db-wal"))
}

#[tokio::test]
async fn a_copied_store_runs_in_order_and_under_its_limits() {
    let (folder, target) = (tempfile::tempdir().unwrap(), Target::new("all"));
    let made = fill(folder.path()).await;
    let before = bytes(folder.path());
    let said = target.copy(folder.path(), &["--migrate", "--json"]).done().json();
    assert_eq!(said["same"], true, "{said}");
    assert!(before == bytes(folder.path()), "the source was changed");
    assert!(!folder.path().join("windlass.db.copying").exists(), "the snapshot was left behind");

    let store = target.open().await;
    let record = async |id: TaskId| store.task(id).await.unwrap().unwrap();
    let state = async |id: TaskId| record(id).await.state;
    let kept = record(made.done.unwrap()).await;
    assert_eq!((kept.state, kept.output.unwrap().as_bytes().to_vec()), (State::Done, b"\"one\"".to_vec()));
    let dead = record(made.dead.unwrap()).await;
    assert_eq!((dead.state, dead.error.as_deref()), (State::Dead, Some("no way")));
    let retried = record(made.retried.unwrap()).await;
    assert_eq!((retried.state, retried.attempt, retried.attempts.len()), (State::Scheduled, 1, 1));
    let crashed = record(made.ran.unwrap()).await;
    assert_eq!((crashed.state, crashed.crashes, crashed.attempt), (State::Ready, 1, 0));
    assert_eq!(record(made.line[0]).await.progress.as_deref(), Some("half"));
    assert_eq!(state(made.of_job[0]).await, State::Held, "no live worker serves its lane yet");
    assert_eq!(store.schedules().list().await.unwrap().len(), 1);
    assert_eq!(store.paused_queues().await.unwrap(), [name("closed")]);
    let stuck = store.gates().workflow(&name("stuck")).await.unwrap().unwrap();
    assert_eq!(stuck.blocked_by, Some(made.stuck[0]));

    // A worker runs every task that can run.
    let mut hand = Hand::new(&*store).await;
    let mut order = Vec::new();
    loop {
        store.admit(MANY).await.unwrap();
        let claimed = hand.claim(10).await;
        assert_eq!(store.audit().await.unwrap(), []);
        let of_press = claimed.iter().filter(|task| task.job == Some(name("press"))).count();
        assert!(of_press <= 2, "{of_press} tasks of a job whose limit is 2");
        for task in &claimed {
            order.push(task.id);
            if let Ok(n) = task.payload.decode() {
                assert_eq!(task.trace, source::trace(n), "its trace came along");
            }
            hand.settle(task, done("there")).await;
        }
        if claimed.is_empty() {
            break;
        }
    }
    let of =
        |ids: &[TaskId]| -> Vec<TaskId> { order.iter().filter(|id| ids.contains(id)).copied().collect() };
    assert_eq!(
        of(&made.ready),
        [1, 3, 0, 2].map(|place| made.ready[place]),
        "by priority, then as they came"
    );
    assert_eq!(of(&made.line), made.line, "steps in their order");
    assert_eq!(of(&made.of_job).len(), made.of_job.len());
    assert!(order.contains(&made.ran.unwrap()));
    assert_eq!(state(made.paused.unwrap()).await, State::Ready, "its queue is paused");
    assert_eq!(state(made.stuck[1]).await, State::Waiting, "its workflow is blocked");
    let idle = store.gates().job(&name("idle")).await.unwrap().unwrap();
    assert_eq!(idle.held, 1, "its job is paused");

    // Keys still belong to their tasks, and new tasks come after all others.
    let repeated = store.enqueue(vec![keyed(1, "done"), keyed(2, "gone"), keyed(70, "later")]).await.unwrap();
    assert!(repeated.iter().all(|enqueued| enqueued.existing), "{repeated:?}");
    assert_eq!(repeated[0].id, made.done.unwrap());
    let conflict = store.enqueue(vec![keyed(9, "done")]).await.unwrap_err();
    assert!(matches!(conflict, Error::KeyConflict { .. }), "{conflict}");
    let within =
        "SELECT count(*) FROM {s}.enqueue(kind => 'echo', payload => '2', key => '{key}') WHERE existing";
    assert_eq!(
        ["done", "gone"].map(|key| target.count_or_conflict(&within.replace("{key}", key))),
        [None, Some(1)]
    );
    let new = add(&*store, vec![task(100)]).await[0];
    assert!(new > made.paused.unwrap());
    let places =
        "SELECT count(*) FROM {s}.task WHERE ready_seq >= (SELECT last_value FROM {s}.seq) AND id <> {new}";
    assert_eq!(target.count(&places.replace("{new}", &new.raw().to_string())), 0);
    store.retire(hand.worker).await.unwrap();
    store.close().await.unwrap();

    let said = target.copy(folder.path(), &[]).done();
    assert!(said.stderr.contains("was copied there before"), "{said:?}");
}

#[tokio::test]
async fn an_interrupted_copy_continues_only_from_its_source() {
    let (folder, target) = (tempfile::tempdir().unwrap(), Target::new("resume"));
    fill(folder.path()).await;
    let other = tempfile::tempdir().unwrap();
    add(&*open_file(other.path()).await, vec![task(1)]).await;
    windlass(folder.path(), &["migrate", "--store", &target.url, "--schema", &target.schema]).done();

    let mut runs = 0;
    let said = loop {
        let said = target.copy(folder.path(), &["--json", "--batch-rows", "2", "--stop-after", "3"]);
        if said.code != Some(130) {
            break said.done();
        }
        runs += 1;
        if runs == 2 {
            target.copy(other.path(), &[]).failed(4, &["another source", "--schema"]);
            // A worker is refused while the copy is not complete.
            let store = target.open().await;
            let mut hand = Hand::new(&*store).await;
            assert_eq!(hand.claim(10).await, []);
            target.copy(folder.path(), &[]).failed(4, &["1 worker is live"]);
            store.retire(hand.worker).await.unwrap();
            store.close().await.unwrap();
        }
    };
    assert!(runs > 3, "{runs} interruptions");
    assert_eq!(said.json()["same"], true, "{said:?}");
    assert!(said.stderr.contains("going on"), "{said:?}");
    let twice = "SELECT count(*) - count(DISTINCT id) FROM (SELECT id FROM {s}.task UNION ALL SELECT id FROM {s}.history) AS t";
    assert_eq!(target.count(twice), 0);
}

#[tokio::test]
async fn a_killed_copy_continues_after_its_last_commit() {
    const TASKS: u32 = 2_000;
    let (folder, target) = (tempfile::tempdir().unwrap(), Target::new("killed"));
    let source = open_file(folder.path()).await;
    add(&*source, (0..TASKS).map(task).collect()).await;
    source.close().await.unwrap();
    drop(source);
    windlass(folder.path(), &["migrate", "--store", &target.url, "--schema", &target.schema]).done();
    let count = "SELECT count(*) FROM {s}.task";
    let mut here = 0;
    for _ in 0..2 {
        let mut arguments = target.arguments();
        arguments.extend(["--batch-rows", "1"]);
        let mut copy = command(folder.path(), &arguments).spawn().unwrap();
        let before = here;
        while here < before + 20 {
            here = target.count(count);
        }
        copy.kill().unwrap();
        assert_eq!(copy.wait().unwrap().code(), None, "it was over before it was killed");
        here = target.count(count);
    }
    assert!(here < u64::from(TASKS));
    let said = target.copy(folder.path(), &["--json"]).done();
    assert_eq!(said.json()["same"], true, "{said:?}");
    assert_eq!(target.count(count), u64::from(TASKS));
}

#[tokio::test]
async fn what_must_not_be_copied_is_refused() {
    let (folder, target) = (tempfile::tempdir().unwrap(), Target::new("refused"));
    let copy = |more: &[&str]| target.copy(folder.path(), more);
    copy(&["--migrate"]).failed(5, &["windlass.db"]);
    let source = open_file(folder.path()).await;
    add(&*source, vec![task(1), task(2)]).await;
    copy(&[]).failed(4, &["in use by process"]);
    source.close().await.unwrap();
    drop(source);

    let copy_to =
        |from: &str, to: &str| windlass(folder.path(), &["store", "copy", "--from", from, "--to", to]);
    copy_to(&target.url, "sqlite:other.db").failed(2, &["from a file to PostgreSQL"]);
    copy_to("sqlite::memory:", &target.url).failed(2, &["in memory"]);
    copy_to("sqlite:windlass.db", &target.url.replace("postgres://", "mysql://")).failed(2, &["mysql://"]);
    let elsewhere = Target { url: target.url.clone(), schema: format!("{}_none", target.schema) };
    elsewhere.copy(folder.path(), &[]).failed(4, &["has no schema", "--migrate"]);

    // A source that has changed since the interrupted copy counts as another source.
    let cut = copy(&["--batch-rows", "1", "--stop-after", "2"]);
    assert_eq!(cut.code, Some(130), "{cut:?}");
    let source = open_file(folder.path()).await;
    add(&*source, vec![task(3)]).await;
    source.close().await.unwrap();
    drop(source);
    copy(&[]).failed(4, &["before it changed"]);

    let busy = Target::new("busy");
    windlass(folder.path(), &["migrate", "--store", &busy.url, "--schema", &busy.schema]).done();
    let store = busy.open().await;
    add(&*store, vec![task(9)]).await;
    busy.copy(folder.path(), &[]).failed(4, &["already holds tasks of its own", "--schema"]);
    store.close().await.unwrap();
    assert_eq!(busy.count("SELECT count(*) FROM {s}.task"), 1);
}
