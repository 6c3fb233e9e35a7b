//! The complete content of a store, and the part of it that a caller may change.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{
    JobRecord, Name, ScheduleRow, SessionRecord, Store, TaskId, TaskRecord, TokenRecord, WorkerId,
    WorkerRecord, WorkflowRecord,
    store::{Filter, PAGE_MAX},
};

use super::{Bearer, Scene};

/// The complete content of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Dump {
    pub tasks: BTreeMap<TaskId, TaskRecord>,
    pub jobs: BTreeMap<Name, JobRecord>,
    pub workflows: BTreeMap<Name, WorkflowRecord>,
    pub schedules: BTreeMap<Name, ScheduleRow>,
    pub workers: BTreeMap<WorkerId, WorkerRecord>,
    pub tokens: Vec<TokenRecord>,
    pub sessions: Vec<SessionRecord>,
    pub paused: Vec<Name>,
    /// Version, progress and text of each bulk run.
    pub runs: Vec<(u64, bool, String)>,
}

impl Dump {
    pub async fn of(store: &dyn Store) -> Self {
        let tasks = store.tasks(&Filter::default(), None, PAGE_MAX).await.unwrap();
        assert_eq!(tasks.next, None, "one page holds all");
        let runs = store.operators().runs(100).await.unwrap();
        Self {
            tasks: tasks.tasks.into_iter().map(|task| (task.id, task)).collect(),
            jobs: by_name(store.gates().jobs(None, PAGE_MAX).await.unwrap(), |job| &job.name),
            workflows: by_name(store.gates().workflows(false, None, PAGE_MAX).await.unwrap(), |flow| {
                &flow.name
            }),
            schedules: by_name(store.schedules().list().await.unwrap(), |row| &row.name),
            workers: store.workers().await.unwrap().into_iter().map(|worker| (worker.id, worker)).collect(),
            tokens: store.tokens().list().await.unwrap(),
            sessions: store.tokens().sessions().list(None, 1_000).await.unwrap(),
            paused: store.paused_queues().await.unwrap(),
            runs: runs.into_iter().map(|run| (run.version, run.is_running, run.text)).collect(),
        }
    }

    /// Fails if the bearer has changed more than its scope allows.
    pub fn assert_allowed(&self, after: &Self, scene: &Scene, bearer: Bearer, what: &str) {
        if bearer == Bearer::Admin {
            return;
        }
        assert_eq!(self.tokens, after.tokens, "{what}: tokens");
        assert_eq!(self.sessions, after.sessions, "{what}: sessions");
        assert_eq!(self.paused, after.paused, "{what}: paused queues");
        assert_eq!(self.runs, after.runs, "{what}: bulk runs");
        self.assert_gates(after, bearer, what);
        self.assert_schedules(after, scene, bearer, what);
        let own = self.own_workers(after, scene, bearer, what);
        for (id, task) in &self.tasks {
            let Some(now) = after.tasks.get(id) else { panic!("{what}: {id} is gone") };
            if task == now {
                continue;
            }
            let held = |task: &TaskRecord| task.worker.is_some_and(|worker| own.contains(&worker));
            assert!(
                bearer.works() && (held(task) || held(now)),
                "{what}: {id} was changed\n{task:?}\n{now:?}"
            );
            assert!(
                bearer.may_have(&task.lane.queue),
                "{what}: {id} is of a queue that the token is not for"
            );
            let kept = |task: &TaskRecord| {
                (task.lane.clone(), task.payload.clone(), task.max_attempts, task.priority, task.job.clone())
            };
            assert_eq!(kept(task), kept(now), "{what}: {id} is another task now");
            assert!(now.attempt <= now.max_attempts, "{what}: {now:?}");
        }
        for task in after.tasks.values().filter(|task| !self.tasks.contains_key(&task.id)) {
            assert!(
                bearer.may_have(&task.lane.queue),
                "{what}: {task:?} is of a queue that the token is not for"
            );
            let is_tick = task.payload == scene.due_payload && task.lane.kind.as_str() == "tick";
            assert!(bearer.enqueues() || bearer.works() && is_tick, "{what}: {task:?} was added");
        }
    }

    /// Checks jobs and workflows: a new task may create one, and counts in it.
    fn assert_gates(&self, after: &Self, bearer: Bearer, what: &str) {
        if !bearer.enqueues() {
            assert_eq!(self.jobs, after.jobs, "{what}: jobs");
            assert_eq!(self.workflows, after.workflows, "{what}: workflows");
        }
        for (name, job) in &self.jobs {
            let set = |job: &JobRecord| (job.state, job.concurrency, job.delay);
            assert_eq!(after.jobs.get(name).map(set), Some(set(job)), "{what}: job {name}");
        }
        for (name, flow) in &self.workflows {
            let head = |flow: &WorkflowRecord| (flow.head, flow.blocked_by, flow.on_failure);
            assert_eq!(after.workflows.get(name).map(head), Some(head(flow)), "{what}: workflow {name}");
        }
    }

    /// Checks schedules: a worker may fire a tick that is due, and the server decides what the tick does.
    fn assert_schedules(&self, after: &Self, scene: &Scene, bearer: Bearer, what: &str) {
        let mut fired = self.schedules.clone();
        let due = fired.get_mut(&scene.due.name).unwrap();
        (due.next_at, due.last_at) = (Some(scene.due_next), scene.due.next_at);
        due.last_task = after.schedules.get(&scene.due.name).and_then(|row| row.last_task);
        let is_fired = bearer == Bearer::Work && after.schedules == fired;
        assert!(after.schedules == self.schedules || is_fired, "{what}: {:?}", after.schedules);
    }

    /// The bearer's workers: the one of the scene, and those that the call registered. No other worker may
    /// have changed.
    fn own_workers(&self, after: &Self, scene: &Scene, bearer: Bearer, what: &str) -> BTreeSet<WorkerId> {
        let new = after.workers.keys().filter(|id| !self.workers.contains_key(id));
        let mut own: BTreeSet<_> = new.copied().collect();
        assert!(bearer.works() || own.is_empty(), "{what}: {own:?} were registered");
        own.extend(scene.own.get(&bearer).map(|own| own.worker));
        for (id, worker) in self.workers.iter().filter(|(id, _)| !own.contains(id)) {
            assert_eq!(after.workers.get(id), Some(worker), "{what}: a worker of another caller");
        }
        own
    }
}

fn by_name<T>(all: Vec<T>, name: impl Fn(&T) -> &Name) -> BTreeMap<Name, T> {
    all.into_iter().map(|one| (name(&one).clone(), one)).collect()
}
