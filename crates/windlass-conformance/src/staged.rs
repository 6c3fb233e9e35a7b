//! A store that a test can make fail, hang, lie or panic, call by call, and that counts its calls.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{
        Arc, Barrier, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Notify;
use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Error, Fire, Gates, Hint, Hints, Lane, LeaseRef, Name, NewTask, NewWorker,
    Operators, Result, Rules, ScheduleRow, Schedules, SettleBatch, Settled, Source, Store, TaskId,
    TaskRecord, Tokens, WorkerId, WorkerRecord, WorkerReport,
    schedule::DueSchedules,
    source::{DutyReport, Reconciled, Renewed},
    store::{Changed, Filter, Finding, LaneRecord, Page, Redrive, Retention, SharedStore, StoreInfo},
    usage::{ReadyLines, Usage},
};

/// The behaviour of a call.
#[derive(Clone)]
pub enum Act {
    /// It fails before it does anything.
    Fail(Error),
    /// It takes effect, but its answer is lost.
    LoseAnswer,
    /// It is lost before it does anything, and the caller cannot tell.
    LoseCall,
    /// It waits for the test, then takes effect.
    Hang(Arc<Notify>),
    /// It takes effect, and its answer waits for the test.
    Late(Arc<Notify>),
    /// It blocks its thread until the test releases it, then takes effect.
    Block(Arc<Barrier>),
    /// It panics.
    Panic,
    /// Only for a claim: it is answered like the last one, as by a store that forgot that one.
    Again,
}

/// Calls that can be staged, and that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// [`Source::claim`].
    Claim,
    /// [`Source::settle`].
    Settle,
    /// [`Source::renew`].
    Renew,
    /// [`Source::unclaim`].
    Unclaim,
    /// [`Source::promote_due`].
    PromoteDue,
    /// [`Source::reconcile`].
    Reconcile,
    /// [`Source::register`].
    Register,
    /// [`Store::enqueue`].
    Enqueue,
    /// [`Store::ended`].
    Ended,
    /// [`Schedules::due`].
    DueSchedules,
    /// [`Schedules::fire`].
    Fire,
}

/// Wraps a store: every call goes through unless the test has staged another behaviour.
pub struct Staged {
    inner: SharedStore,
    script: Mutex<BTreeMap<On, VecDeque<Act>>>,
    always: Mutex<BTreeMap<On, Act>>,
    calls: Mutex<BTreeMap<On, u64>>,
    enqueued: Mutex<Vec<NewTask>>,
    last_claim: Mutex<Option<ClaimAnswer>>,
    lease_ttl: Option<Duration>,
    crashes: AtomicBool,
    silent: bool,
}

/// The internal error that makes a claim repeat its last answer.
const AGAIN: &str = "again";
/// Most tasks in one query for ends: a caller splits a larger one.
const ENDED_MAX: usize = 10_000;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Staged {
    /// A wrapper with nothing staged.
    pub fn new(inner: SharedStore) -> Self {
        Self {
            inner,
            script: Mutex::default(),
            always: Mutex::default(),
            calls: Mutex::default(),
            enqueued: Mutex::default(),
            last_claim: Mutex::default(),
            lease_ttl: None,
            crashes: AtomicBool::new(false),
            silent: false,
        }
    }

    /// A store that loses all hints.
    pub fn without_hints(inner: SharedStore) -> Self {
        Self { silent: true, ..Self::new(inner) }
    }

    /// Lets every lease run out after this long, also if the worker asked for a longer one.
    #[must_use]
    pub fn lease_ttl(self, lease_ttl: Duration) -> Self {
        Self { lease_ttl: Some(lease_ttl), ..self }
    }

    /// From now on every renewal reports a crash of the store.
    pub fn crash_again_and_again(&self) {
        self.crashes.store(true, Ordering::SeqCst);
    }

    /// Stages the next calls.
    pub fn next(&self, on: On, acts: impl IntoIterator<Item = Act>) {
        locked(&self.script).entry(on).or_default().extend(acts);
    }

    /// How many acts no call has used yet: a script that did not run to its end shows nothing.
    pub fn left(&self, on: On) -> usize {
        locked(&self.script).get(&on).map_or(0, VecDeque::len)
    }

    /// Stages all calls from now on, or none with `None`.
    pub fn always(&self, on: On, act: Option<Act>) {
        let mut always = locked(&self.always);
        match act {
            Some(act) => always.insert(on, act),
            None => always.remove(&on),
        };
    }

    /// How many such calls there were.
    pub fn calls(&self, on: On) -> u64 {
        locked(&self.calls).get(&on).copied().unwrap_or(0)
    }

    /// The tasks of all enqueues, also of failed ones.
    pub fn enqueued(&self) -> Vec<NewTask> {
        locked(&self.enqueued).clone()
    }

    #[expect(clippy::panic, reason = "a panic is one of the acts")]
    async fn stage<T>(&self, on: On, act: impl Future<Output = Result<T>>) -> Result<T> {
        *locked(&self.calls).entry(on).or_default() += 1;
        let staged = locked(&self.script).get_mut(&on).and_then(VecDeque::pop_front);
        let staged = staged.or_else(|| locked(&self.always).get(&on).cloned());
        let lost = || Err(Error::Unknown(format!("{on:?}, as staged")));
        match staged {
            None => act.await,
            Some(Act::Fail(error)) => Err(error),
            Some(Act::LoseAnswer) => {
                act.await?;
                lost()
            }
            Some(Act::LoseCall) => lost(),
            Some(Act::Hang(gate)) => {
                gate.notified().await;
                act.await
            }
            Some(Act::Late(gate)) => {
                let answer = act.await;
                gate.notified().await;
                answer
            }
            Some(Act::Block(gate)) => {
                gate.wait();
                act.await
            }
            Some(Act::Panic) => panic!("staged panic"),
            Some(Act::Again) => Err(Error::Unsupported(AGAIN.into())),
        }
    }
}

struct Silence;

#[async_trait]
impl Hints for Silence {
    async fn next(&mut self) -> Hint {
        std::future::pending().await
    }
}

#[async_trait]
impl Source for Staged {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        let lease_ttl = self.lease_ttl.unwrap_or(worker.lease_ttl);
        self.stage(On::Register, self.inner.register(NewWorker { lease_ttl, ..worker })).await
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        let renewed = self.stage(On::Renew, self.inner.renew(worker, report)).await?;
        let epoch = if self.crashes.load(Ordering::SeqCst) {
            Some(self.calls(On::Renew) as u32)
        } else {
            renewed.epoch
        };
        Ok(Renewed { epoch, ..renewed })
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        self.inner.retire(worker).await
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        self.inner.lanes(kinds, queues).await
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        let answer = match self.stage(On::Claim, self.inner.claim(demands)).await {
            Err(Error::Unsupported(what)) if what == AGAIN => {
                locked(&self.last_claim).clone().ok_or(Error::Unsupported(what))
            }
            answer => answer,
        };
        if let Ok(answer) = &answer
            && !answer.tasks.is_empty()
        {
            *locked(&self.last_claim) = Some(answer.clone());
        }
        answer
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        self.stage(On::Unclaim, self.inner.unclaim(worker, claim_no)).await
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        self.stage(On::Settle, self.inner.settle(batch)).await
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        self.inner.progress(worker, lease, progress).await
    }

    async fn reconcile(&self, worker: WorkerId, up_to: u64, in_flight: &[LeaseRef]) -> Result<Reconciled> {
        self.stage(On::Reconcile, self.inner.reconcile(worker, up_to, in_flight)).await
    }

    async fn admit(&self, limit: u32) -> Result<DutyReport> {
        self.inner.admit(limit).await
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        self.stage(On::PromoteDue, self.inner.promote_due(limit)).await
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        self.inner.expire_workers(limit).await
    }

    fn hints(&self) -> Box<dyn Hints> {
        if self.silent { Box::new(Silence) } else { self.inner.hints() }
    }
}

#[async_trait]
impl Store for Staged {
    fn rules(&self) -> &Rules {
        self.inner.rules()
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        locked(&self.enqueued).extend(tasks.iter().cloned());
        self.stage(On::Enqueue, self.inner.enqueue(tasks)).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.inner.task(id).await
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        self.inner.tasks(filter, after, limit).await
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        if ids.len() > ENDED_MAX {
            return Err(Error::invalid("too many tasks in one look-up"));
        }
        self.stage(On::Ended, self.inner.ended(ids, wait)).await
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        self.inner.cancel(ids, reason).await
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        self.inner.redrive(tasks).await
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        self.inner.remove(ids).await
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        self.inner.key_holder(queue, key).await
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        self.inner.lane_records().await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        self.inner.set_queue_paused(queue, paused).await
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        self.inner.paused_queues().await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        self.inner.workers().await
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        self.inner.set_worker_slots(worker, slots).await
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        self.inner.retain(retention).await
    }

    fn gates(&self) -> &dyn Gates {
        self.inner.gates()
    }

    fn schedules(&self) -> &dyn Schedules {
        self
    }

    fn tokens(&self) -> &dyn Tokens {
        self.inner.tokens()
    }

    fn operators(&self) -> &dyn Operators {
        self.inner.operators()
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.inner.audit().await
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        self.inner.ready_lines().await
    }

    async fn info(&self) -> Result<StoreInfo> {
        self.inner.info().await
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        self.inner.backup(to).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

#[async_trait]
impl Schedules for Staged {
    async fn put(&self, row: &ScheduleRow) -> Result<()> {
        self.inner.schedules().put(row).await
    }

    async fn list(&self) -> Result<Vec<ScheduleRow>> {
        self.inner.schedules().list().await
    }

    async fn remove(&self, name: &Name) -> Result<bool> {
        self.inner.schedules().remove(name).await
    }

    async fn due(&self, limit: u32) -> Result<DueSchedules> {
        self.stage(On::DueSchedules, self.inner.schedules().due(limit)).await
    }

    async fn fire(&self, fire: Fire) -> Result<Option<Enqueued>> {
        self.stage(On::Fire, self.inner.schedules().fire(fire)).await
    }
}
