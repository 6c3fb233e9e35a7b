//! A copy taken in the middle of random work: both sides must show the same.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tempfile::TempDir;
use windlass_conformance::{
    Harness,
    harness::START,
    property::{Effort, interrupt},
};
use windlass_core::{
    Clock, JobRecord, Name, Rules, ScheduleRow, Store, TaskRecord, Timestamp, WorkflowRecord,
    store::Filter,
    time::ManualClock,
    transfer::{Part, Rows},
};
use windlass_postgres::import::{Import, Progress};
use windlass_sqlite::{Durability, Location, Options, SqliteStore, export::Export};

use super::{MANY, Target};

/// Rows of a batch: few, so that a copy has many batches.
const BATCH: usize = 3;

/// Opens one store in a folder of its own.
struct Files {
    clock: Arc<ManualClock>,
    folder: TempDir,
    rules: Mutex<Rules>,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { clock: Arc::new(ManualClock::new(START)), folder, rules: Mutex::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("windlass.db")
    }

    fn options(&self) -> Options {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let rules = self.rules.lock().unwrap().clone();
        Options::new().rules(rules).durability(Durability::Normal).clock(clock).min_free(0, 0)
    }
}

#[async_trait]
impl Harness for Files {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        *self.rules.lock().unwrap() = rules;
        SqliteStore::open(&Location::File(self.path()), self.options()).await.unwrap()
    }

    async fn reopen(&self, _store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        None
    }

    async fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn jump_wall(&self, _to: Timestamp) -> bool {
        false
    }
}

/// The state that a store shows.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    tasks: Vec<TaskRecord>,
    jobs: Vec<JobRecord>,
    workflows: Vec<WorkflowRecord>,
    schedules: Vec<ScheduleRow>,
    paused: Vec<Name>,
}

async fn look(store: &dyn Store) -> Look {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = store.tasks(&Filter::default(), after, MANY).await.unwrap();
        tasks.extend(page.tasks);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let workflows = store.gates().workflows(false, None, MANY).await.unwrap();
    Look {
        tasks,
        jobs: store.gates().jobs(None, MANY).await.unwrap(),
        workflows: workflows.into_iter().map(shown).collect(),
        schedules: store.schedules().list().await.unwrap(),
        paused: store.paused_queues().await.unwrap(),
    }
}

/// A blocked workflow runs no step, so the stores may differ in whether they name the next one. Leave it
/// out.
fn shown(workflow: WorkflowRecord) -> WorkflowRecord {
    match workflow.blocked_by {
        Some(_) => WorkflowRecord { head: None, head_state: None, ..workflow },
        None => workflow,
    }
}

/// Copies a store in the same way as the program.
async fn copy(export: &Export, target: &Target) {
    let mut options = target.options();
    options.migrate = true;
    let mut import = Import::connect(&target.location(), &options).await.unwrap();
    let marks = export.marks().unwrap();
    let Rows::Lanes(lanes) = export.rows(Part::Lanes, 0).next(1_000).unwrap() else { unreachable!() };
    import.begin(export.id(), &marks, &lanes).await.unwrap();
    while let Progress::At { part, rows } = import.progress() {
        let mut stream = export.rows(part, rows);
        loop {
            let rows = stream.next(BATCH).unwrap();
            import.take(&rows, &marks).await.unwrap();
            if rows.is_empty() {
                break;
            }
        }
        if part == Part::Keys {
            let paused = export.store().paused_queues().await.unwrap();
            let paused: Vec<String> = paused.iter().map(|queue| queue.as_str().to_owned()).collect();
            import.finish(&marks, &paused).await.unwrap();
        }
    }
    assert_eq!(export.counts().unwrap(), import.counts().await.unwrap());
}

/// The tasks and rows that only one side shows.
fn only_in(side: &str, this: &Look, other: &Look) -> String {
    let lines = |look: &Look| -> Vec<String> { format!("{look:#?}").lines().map(str::to_owned).collect() };
    let tasks = this.tasks.iter().filter(|task| !other.tasks.contains(task)).map(|task| format!("{task:?}"));
    let known = lines(&Look { tasks: Vec::new(), ..other.clone() });
    let rest = lines(&Look { tasks: Vec::new(), ..this.clone() });
    let rest = rest.into_iter().filter(|line| !known.contains(line));
    let lines: Vec<String> = tasks.chain(rest).map(|line| format!("only in the {side}: {line}")).collect();
    lines.join("\n") + "\n"
}

fn compare(files: &Files, target: &Target) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let export = Export::open(&files.path(), files.options()).await.unwrap();
        copy(&export, target).await;
        let store = target.open().await;
        let (source, copied) = (look(&**export.store()).await, look(&*store).await);
        let findings = store.audit().await.unwrap();
        store.close().await.unwrap();
        export.close().await.unwrap();
        if source != copied {
            return Err(format!(
                "{}{}",
                only_in("source", &source, &copied),
                only_in("copy", &copied, &source)
            ));
        }
        if findings.is_empty() { Ok(()) } else { Err(format!("{findings:?}")) }
    })
}

#[test]
fn a_copy_in_the_middle_of_random_work_shows_the_same() {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let cases = if std::env::var_os("WINDLASS_LONG").is_some() { 200 } else { 25 };
    let effort = Effort { cases, steps: 100, shrink: Duration::from_secs(30) };
    let verdict = interrupt(Files::new, effort, |files| {
        let target = Target::new(&format!("model_{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        compare(files, &target)
    });
    if let Err(difference) = verdict {
        panic!("{difference}");
    }
}
