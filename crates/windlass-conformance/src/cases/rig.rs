//! The tools of the cases: a store, workers that the case controls, and a clock that it can move.

use std::{sync::Arc, time::Duration};

use windlass_core::{
    ClaimAnswer, Claimed, Demand, JobChange, JobRecord, JobState, LeaseRef, Name, NewTask, NewWorker,
    Outcome, Payload, Result, Rules, SettleBatch, SettleItem, Settled, State, Store, TaskId, TaskRecord,
    WorkerId, WorkerReport, WorkflowRecord, settle,
    store::{Filter, Redrive},
    task::Key,
};

use crate::{claims::claim_out, harness::Harness};

/// The lease of every worker in the suite.
pub const TTL: Duration = Duration::from_secs(10);
/// A worker without a renewal for this long is swept.
pub const SWEPT_AFTER: Duration = Duration::from_secs(11);
/// More than any case holds.
pub const MANY: u32 = 1_000;
/// The kinds that the suite's workers handle.
const KINDS: [&str; 3] = ["a", "b", "c"];

/// A store under test.
pub struct Rig<'h> {
    pub harness: &'h dyn Harness,
    pub store: Arc<dyn Store>,
}

impl<'h> Rig<'h> {
    pub async fn open(harness: &'h dyn Harness) -> Self {
        Self::with(harness, Rules::default()).await
    }

    pub async fn with(harness: &'h dyn Harness, rules: Rules) -> Self {
        Self { harness, store: harness.open(rules).await }
    }

    /// The same store after a restart; `None` if this store does not survive a restart.
    pub async fn reopen(self) -> Option<Self> {
        let store = self.harness.reopen(self.store).await?;
        Some(Self { harness: self.harness, store })
    }

    pub async fn add(&self, task: NewTask) -> TaskId {
        self.store.enqueue(vec![task]).await.unwrap()[0].id
    }

    pub async fn add_many(&self, kind: &str, n: usize) -> Vec<TaskId> {
        let answers = self.store.enqueue(vec![task(kind); n]).await.unwrap();
        answers.into_iter().map(|answer| answer.id).collect()
    }

    /// Adds tasks in one call; answers their ids.
    pub async fn add_all(&self, tasks: Vec<NewTask>) -> Vec<TaskId> {
        let answers = self.store.enqueue(tasks).await.unwrap();
        answers.into_iter().map(|answer| answer.id).collect()
    }

    /// A worker that handles every kind of the suite in every queue.
    pub async fn worker(&self) -> Hand<'h> {
        self.worker_of(&KINDS, &[], 100).await
    }

    /// The same, in another process than the store's.
    pub async fn remote_worker(&self) -> Hand<'h> {
        self.hand(&KINDS, &[], 100, true).await
    }

    /// A worker for some kinds and queues.
    pub async fn worker_of(&self, kinds: &[&str], queues: &[&str], slots: u32) -> Hand<'h> {
        self.hand(kinds, queues, slots, false).await
    }

    async fn hand(&self, kinds: &[&str], queues: &[&str], slots: u32, is_remote: bool) -> Hand<'h> {
        let worker = NewWorker {
            host: "host".to_owned(),
            pid: 1,
            version: "0".to_owned(),
            kinds: kinds.iter().copied().map(name).collect(),
            queues: queues.iter().copied().map(name).collect(),
            slots,
            lease_ttl: TTL,
        };
        let store = self.harness.connect(&self.store).await;
        let registered =
            if is_remote { store.register_remote(worker, None).await } else { store.register(worker).await };
        let id = registered.unwrap();
        self.harness.settle_down(&*store).await;
        let (kinds, queues) = (kinds.iter().copied().map(name), queues.iter().copied().map(name));
        let (kinds, queues) = (kinds.collect(), queues.collect());
        Hand { harness: self.harness, store, id, kinds, queues, claim_no: 0, batch_no: 0 }
    }

    pub async fn task(&self, id: TaskId) -> TaskRecord {
        self.harness.settle_down(&*self.store).await;
        self.store.task(id).await.unwrap().expect("the task exists")
    }

    pub async fn state(&self, id: TaskId) -> State {
        self.task(id).await.state
    }

    pub async fn states(&self, ids: &[TaskId]) -> Vec<State> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.state(*id).await);
        }
        states
    }

    /// Every task, newest first.
    pub async fn all(&self) -> Vec<TaskRecord> {
        self.harness.settle_down(&*self.store).await;
        list(&*self.store, &Filter::default()).await
    }

    pub async fn advance(&self, by: Duration) {
        self.harness.advance(by).await;
    }

    /// Promotes every due task; answers how many.
    pub async fn promote(&self) -> u64 {
        let mut moved = 0;
        loop {
            let report = self.store.promote_due(MANY).await.unwrap();
            moved += report.moved;
            if !report.more {
                return moved;
            }
        }
    }

    /// Takes the tasks of every dead worker; answers how many.
    pub async fn sweep(&self) -> u64 {
        let mut moved = 0;
        loop {
            let report = self.store.expire_workers(MANY).await.unwrap();
            moved += report.moved;
            if !report.more {
                return moved;
            }
        }
    }

    /// Lets a worker die with the tasks that it holds.
    pub async fn let_die(&self, _worker: Hand<'h>) -> u64 {
        self.advance(SWEPT_AFTER + Duration::from_secs(1)).await;
        self.sweep().await
    }

    pub async fn redrive(&self, id: TaskId) -> Result<State> {
        let redrive = Redrive { id, delay: Duration::ZERO };
        self.store.redrive(&[redrive]).await.unwrap().remove(0).result
    }

    pub async fn cancel(&self, id: TaskId) -> Result<State> {
        self.store.cancel(&[id], "not wanted").await.unwrap().remove(0).result
    }

    /// Sets a job's limit.
    pub async fn limit(&self, job: &str, limit: u32) -> JobRecord {
        self.set_job(job, JobChange { concurrency: Some(Some(limit)), ..JobChange::default() }).await
    }

    pub async fn set_job_state(&self, job: &str, state: JobState) -> JobRecord {
        self.set_job(job, JobChange { state: Some(state), ..JobChange::default() }).await
    }

    pub async fn set_job(&self, job: &str, change: JobChange) -> JobRecord {
        self.store.gates().set_job(&name(job), &change).await.unwrap()
    }

    pub async fn job(&self, job: &str) -> JobRecord {
        self.harness.settle_down(&*self.store).await;
        self.store.gates().job(&name(job)).await.unwrap().expect("the job exists")
    }

    /// How many of a job's tasks are ready, run and are held.
    pub async fn figures(&self, job: &str) -> (u64, u64, u64) {
        let job = self.job(job).await;
        (job.ready, job.running, job.held)
    }

    pub async fn workflow(&self, workflow: &str) -> Option<WorkflowRecord> {
        self.harness.settle_down(&*self.store).await;
        self.store.gates().workflow(&name(workflow)).await.unwrap()
    }

    pub async fn assert_sound(&self) {
        self.harness.settle_down(&*self.store).await;
        assert_eq!(self.store.audit().await.unwrap(), [], "the audit found something");
    }
}

/// A worker that the case controls step by step.
pub struct Hand<'h> {
    pub harness: &'h dyn Harness,
    pub store: Arc<dyn Store>,
    pub id: WorkerId,
    pub kinds: Vec<Name>,
    pub queues: Vec<Name>,
    pub claim_no: u64,
    pub batch_no: u64,
}

impl Hand<'_> {
    /// The demand of the next claim, over every lane that it handles.
    pub async fn demand(&mut self, n: u32) -> Demand {
        let lanes = self.store.lanes(&self.kinds, &self.queues).await.unwrap();
        self.claim_no += 1;
        Demand::new(self.id, self.claim_no, lanes.iter().map(|lane| lane.id).collect(), n)
    }

    /// Claims; once more if the claim found that there are new lanes, as a coordinator does.
    pub async fn try_claim(&mut self, n: u32) -> Result<ClaimAnswer> {
        self.harness.settle_down(&*self.store).await;
        let demand = self.demand(n).await;
        let lanes = demand.lanes.clone();
        let answer = claim_out(&*self.store, &[demand]).await?;
        let left = n.saturating_sub(answer.tasks.len() as u32);
        let demand = self.demand(left).await;
        if left == 0 || demand.lanes == lanes {
            self.claim_no -= 1;
            return Ok(answer);
        }
        let mut more = claim_out(&*self.store, &[demand]).await?;
        more.tasks.splice(0..0, answer.tasks);
        Ok(more)
    }

    pub async fn claim(&mut self, n: u32) -> Vec<Claimed> {
        self.try_claim(n).await.unwrap().tasks
    }

    pub async fn claim_one(&mut self) -> Claimed {
        let mut tasks = self.claim(1).await;
        assert_eq!(tasks.len(), 1, "one task is ready");
        tasks.remove(0)
    }

    pub async fn claim_ids(&mut self, n: u32) -> Vec<TaskId> {
        self.claim(n).await.iter().map(|task| task.id).collect()
    }

    /// A numbered batch of settlements, decided as the runtime's worker decides them.
    pub async fn batch(&mut self, ends: Vec<(Claimed, Outcome)>) -> SettleBatch {
        let now = self.harness.now().await;
        let rules = self.store.rules();
        let end =
            |(task, outcome): (Claimed, Outcome)| SettleItem::new(&task, settle(&task, outcome, now, rules));
        self.batch_no += 1;
        let items = ends.into_iter().map(end).collect();
        SettleBatch { worker: self.id, settler_no: 0, batch_no: self.batch_no, items }
    }

    pub async fn settle(&mut self, ends: Vec<(Claimed, Outcome)>) -> Settled {
        let batch = self.batch(ends).await;
        let settled = self.store.settle(Arc::new(batch)).await.unwrap();
        self.harness.settle_down(&*self.store).await;
        settled
    }

    /// Ends an attempt that this worker holds.
    pub async fn end(&mut self, task: &Claimed, outcome: Outcome) {
        let settled = self.settle(vec![(task.clone(), outcome)]).await;
        assert_eq!(settled.fenced, [], "the lease is held");
    }

    /// Ends an attempt in success.
    pub async fn finish(&mut self, task: &Claimed) {
        self.end(task, Outcome::Done(None)).await;
    }

    pub async fn renew(&self) -> Result<windlass_core::source::Renewed> {
        self.store.renew(self.id, WorkerReport::default()).await
    }
}

pub fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

/// A plain task.
pub fn task(kind: &str) -> NewTask {
    NewTask::new(kind, Payload::json(&1).unwrap()).unwrap()
}

pub fn in_queue(kind: &str, queue: &str) -> NewTask {
    NewTask { queue: name(queue), ..task(kind) }
}

/// A task of a job.
pub fn of_job(job: &str) -> NewTask {
    NewTask { job: Some(name(job)), ..task("a") }
}

/// A step of a workflow.
pub fn step_of(workflow: &str) -> NewTask {
    NewTask { workflow: Some(name(workflow)), ..task("a") }
}

pub fn keyed(key: &str) -> NewTask {
    NewTask { key: Some(Key { text: key.to_owned(), ignore_conflict: false }), ..task("a") }
}

pub fn lease_of(task: &Claimed) -> LeaseRef {
    LeaseRef { id: task.id, lease: task.lease }
}

/// Every task that matches the filter, over all pages.
pub async fn list(store: &dyn Store, filter: &Filter) -> Vec<TaskRecord> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = store.tasks(filter, after, 100).await.unwrap();
        tasks.extend(page.tasks);
        after = page.next;
        if after.is_none() {
            return tasks;
        }
    }
}
