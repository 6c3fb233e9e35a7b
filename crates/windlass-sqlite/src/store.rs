//! The store's interface: each call becomes a request to the writer, or a read.

use std::{
    future::Future,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Enqueued, Error, Gates, Hints, Lane, LeaseRef, Name, NewTask, NewWorker,
    Operators, Result, Rules, Schedules, SettleBatch, Settled, Source, Start, Store, TaskId, TaskRecord,
    Timestamp, Tokens, WorkerId, WorkerRecord, WorkerReport,
    source::{DutyReport, Reconciled, Renewed},
    store::{
        Changed, Detail, Filter, Finding, LaneRecord, Page, Redrive, Retention, Safe, StoreInfo, Summaries,
    },
    task::batch,
    usage::{ReadyLines, Usage},
    worker::Registration,
};

use crate::{
    claim,
    connection::{
        answer::{answered, timed},
        call::{Call, Class, Sync},
        error::OpenError,
        open,
        options::{Location, Options},
        reader::{closed, read_error},
        tx::{Step, Tx},
    },
    enqueue::{self, for_worker, keyed},
    gates::admit,
    leases::hand_back::{self, Home},
    operate::{self, info, inspect},
    settle,
    shared::Shared,
    transfer::backup,
    upkeep::{
        audit,
        migrate::{MIGRATIONS, Migration},
        retention,
    },
};

/// Tasks that one request changes; a longer list becomes several requests, so that none holds the writer for
/// long.
const CHANGES_PER_REQUEST: usize = 1_000;

/// The embedded store: one SQLite file, one writer thread.
///
/// Every method of [`Store`] and [`Source`] may be called from any task; simultaneous calls share one commit.
/// A dropped call may still take effect.
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
    location: Location,
    schema_version: u32,
    created: bool,
    recovered: u64,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("location", &self.location).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a store, or creates it. Tasks that workers of an earlier process held when it died are ready
    /// again; remote workers have one lease time to reconnect.
    ///
    /// # Errors
    /// [`OpenError`], one line that tells the operator what to do.
    pub async fn open(location: &Location, options: Options) -> Result<Arc<Self>, OpenError> {
        Self::open_with(location, options, MIGRATIONS).await
    }

    pub(crate) async fn open_with(
        location: &Location,
        options: Options,
        migrations: &'static [Migration],
    ) -> Result<Arc<Self>, OpenError> {
        // The process may change its working folder later, and other processes have other ones.
        let location = location.clone().absolute();
        let shown = location.path().unwrap_or(Path::new(":memory:")).to_owned();
        let (told, opened) = oneshot::channel();
        let place = location.clone();
        let thread = std::thread::Builder::new()
            .name("windlass-write".to_owned())
            .spawn(move || match open::open(&place, options, migrations) {
                Ok(opened) => {
                    let shared = Arc::clone(&opened.writer.shared);
                    let _ = told.send(Ok((shared, opened.migrated, opened.recovered)));
                    opened.writer.run();
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                }
            })
            .map_err(|error| OpenError::io(&shown, "start a writer of", &error))?;
        let lost = || OpenError::io(&shown, "open", &std::io::Error::other("its writer thread panicked"));
        let (shared, migrated, recovered) = opened.await.map_err(|_| lost())??;
        Ok(Arc::new(Self {
            shared,
            location,
            schema_version: migrated.version,
            created: migrated.created,
            recovered,
            writer: Mutex::new(Some(thread)),
        }))
    }

    /// Writes into the lock file where this process can be reached, for the error of the next opener.
    pub fn set_address(&self, address: &str) {
        let lock = self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = lock.as_ref()
            && let Err(error) = lock.write(Some(address))
        {
            tracing::warn!(%error, "could not write the address into the lock file");
        }
    }

    /// Resolves with the reason when the store has failed permanently; the process must end then.
    pub fn fatal(&self) -> impl Future<Output = String> + Send + 'static {
        let mut fatal = self.shared.fatal.subscribe();
        async move {
            loop {
                let reason = fatal.borrow_and_update().clone();
                if let Some(reason) = reason {
                    return reason;
                }
                if fatal.changed().await.is_err() {
                    // The store was closed without a failure.
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Where the store is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        class: Class,
        sync: Sync,
        work: impl FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
    ) -> Result<T> {
        let writer = &self.shared.meters.writer;
        let _use = writer.enter();
        let (request, answer) = Call::pair(class, sync, timed(Arc::clone(writer), work));
        self.shared.queue.push(request);
        answered(answer).await
    }

    /// Changes tasks, in several requests if they are many.
    async fn change_all<T: Clone + Send + 'static>(
        &self,
        tasks: &[T],
        change: impl Fn(&mut Tx<'_>, &[T]) -> Step<Vec<Changed>> + Clone + Send + 'static,
    ) -> Result<Vec<Changed>> {
        let mut changed = Vec::with_capacity(tasks.len());
        for tasks in tasks.chunks(CHANGES_PER_REQUEST) {
            let (tasks, change) = (tasks.to_vec(), change.clone());
            let class = Class::of_client(tasks.len());
            changed.extend(self.write(class, Sync::Durable, move |tx| change(tx, &tasks)).await?);
        }
        Ok(changed)
    }

    /// Syncs everything that was written before.
    fn flush(&self) -> Safe {
        let touch = |tx: &mut Tx<'_>| {
            for_worker::touch(tx);
            Ok(())
        };
        let (request, answer) = Call::pair(Class::Client, Sync::Durable, touch);
        self.shared.queue.push(request);
        Safe::when(async move { answered(answer).await.map_err(for_worker::in_doubt) })
    }

    pub(crate) fn count_enqueued<'a>(&self, enqueued: impl IntoIterator<Item = &'a Enqueued>) {
        self.shared.meters.enqueues.count(enqueued);
    }

    /// The store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.options.clock.wall()
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.shared.queue.close(closed());
        // The lock is free when this returns, so that the store can be opened again.
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }
}

#[async_trait]
impl Source for SqliteStore {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::register(tx, &worker, Home::Here))
            .await
    }

    async fn register_remote(&self, worker: NewWorker, owner: Option<&str>) -> Result<WorkerId> {
        let home = Home::Elsewhere { owner: owner.map(str::to_owned) };
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::register(tx, &worker, home.clone()))
            .await
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        if let Some(reason) = self.shared.fatal.borrow().clone() {
            return Err(Error::Fatal(reason));
        }
        self.shared.leases.renew(worker, report, self.shared.options.clock.as_ref())
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::retire(tx, worker)).await
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        let (kinds, queues) = (kinds.to_vec(), queues.to_vec());
        self.write(Class::Control, Sync::Read, move |tx| Ok(info::lanes(tx, &kinds, &queues))).await
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        let (demands, sync) = (demands.to_vec(), Sync::of_claims(&self.shared.options));
        self.write(Class::Claim, sync, move |tx| claim::claim(tx, &demands)).await
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::unclaim(tx, worker, claim_no)).await
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        self.write(Class::Control, Sync::Durable, move |tx| settle::settle(tx, &batch)).await
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        let progress = self.shared.options.rules.clip_error(&progress);
        self.write(Class::Control, Sync::Relaxed, move |tx| hand_back::progress(tx, worker, lease, &progress))
            .await
    }

    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        let in_flight = in_flight.to_vec();
        self.write(Class::Control, Sync::Durable, move |tx| {
            hand_back::reconcile(tx, worker, up_to_claim_no, &in_flight)
        })
        .await
    }

    async fn admit(&self, limit: u32) -> Result<DutyReport> {
        self.write(Class::Claim, Sync::Relaxed, move |tx| admit::admit(tx, limit)).await
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        // In the class of claims: the coordinator waits for it before it claims.
        self.write(Class::Claim, Sync::Relaxed, move |tx| retention::promote_due(tx, limit)).await
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::expire_workers(tx, limit)).await
    }

    fn hints(&self) -> Box<dyn Hints> {
        self.shared.subscribers.subscribe()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn rules(&self) -> &Rules {
        &self.shared.options.rules
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        batch::check(&tasks, self.rules())?;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let may_start = tasks.iter().any(|task| task.start == Start::Now);
        let class = Class::of_client(tasks.len());
        let meters = &self.shared.meters;
        let _use = meters.writer.enter();
        let work = timed(Arc::clone(&meters.writer), move |tx| enqueue::enqueue(tx, &tasks));
        let (request, answer) = Call::pair(class, Sync::Durable, work);
        self.shared.queue.push(request);
        // An idle worker claims while the writer wakes up, and its claim shares the commit of the enqueue.
        if may_start && class == Class::Client {
            self.shared.subscribers.tell_ready();
        }
        let enqueued = answered(answer).await?;
        self.count_enqueued(&enqueued);
        Ok(enqueued)
    }

    async fn enqueue_for(&self, task: NewTask, demand: &Demand) -> Result<(Enqueued, Option<Claimed>, Safe)> {
        batch::check(std::slice::from_ref(&task), self.rules())?;
        let (demand, is_plain) = (demand.clone(), task.is_plain() && !self.shared.options.durable_claims);
        // Answers to other callers may depend on a key or a gate, so those must be durable at once.
        let sync = if is_plain { Sync::Relaxed } else { Sync::Durable };
        let work = move |tx: &mut Tx<'_>| for_worker::enqueue_for(tx, &task, &demand);
        let (enqueued, claimed) = self.write(Class::Client, sync, work).await?;
        self.count_enqueued([&enqueued]);
        Ok((enqueued, claimed, if is_plain { self.flush() } else { Safe::already() }))
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        self.read(move |conn| inspect::task(conn, id)).await
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        self.page(filter, Detail::Whole, (after, limit)).await
    }

    async fn summaries(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Summaries> {
        Ok(self.page(filter, Detail::Summary, (after, limit)).await?.summarised())
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        if ids.len() > inspect::ENDED_IDS_MAX {
            return Err(Error::invalid(format!(
                "{} tasks in one look-up; at most {}",
                ids.len(),
                inspect::ENDED_IDS_MAX
            )));
        }
        // Register before the first look: otherwise an end between the two would be missed.
        let interest = self.shared.awaited.wait_for(ids);
        let deadline = tokio::time::Instant::now().checked_add(wait);
        let mut fatal = self.shared.fatal.subscribe();
        let mut closing = self.shared.ended.subscribe();
        loop {
            let wanted = ids.to_vec();
            let ended = self.read(move |conn| inspect::ended(conn, &wanted)).await?;
            if !ended.is_empty() || ids.is_empty() || wait.is_zero() {
                return Ok(ended);
            }
            let over = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = interest.woken() => {}
                () = over => return Ok(Vec::new()),
                _ = closing.wait_for(|ended| *ended) => return Err(closed()),
                _ = fatal.changed() => return Err(Error::Fatal(fatal.borrow().clone().unwrap_or_default())),
            }
        }
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        let reason: Arc<str> = self.rules().clip_error(reason).into();
        self.change_all(ids, move |tx, ids| operate::cancel(tx, ids, &reason)).await
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        self.change_all(tasks, operate::redrive).await
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        self.change_all(ids, operate::remove).await
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        let (queue, key) = (queue.clone(), key.to_owned());
        self.write(Class::Client, Sync::Read, move |tx| keyed::holder(tx, &queue, &key)).await
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        self.write(Class::Client, Sync::Read, |tx| Ok(info::lane_records(tx))).await
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        let queue = queue.clone();
        self.write(Class::Client, Sync::Durable, move |tx| operate::set_paused(tx, &queue, paused)).await
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        self.write(Class::Client, Sync::Read, |tx| Ok(tx.memory.paused().iter().cloned().collect())).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        let now = self.now();
        let ended = self.read(move |conn| info::ended_workers(conn, now)).await?;
        Ok(info::with_live(ended, self.shared.leases.records(self.shared.options.clock.monotonic())))
    }

    async fn registration(&self, worker: WorkerId) -> Result<Option<Registration>> {
        self.read(move |conn| inspect::registration(conn, worker).map_err(|error| read_error(&error))).await
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        self.write(Class::Control, Sync::Durable, move |tx| hand_back::set_slots(tx, worker, slots)).await
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        let retention = *retention;
        self.write(Class::Maintenance, Sync::Relaxed, move |tx| retention::retain(tx, &retention)).await
    }

    fn gates(&self) -> &dyn Gates {
        self
    }

    fn schedules(&self) -> &dyn Schedules {
        self
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn operators(&self) -> &dyn Operators {
        self
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        audit::explained(self).await
    }

    async fn info(&self) -> Result<StoreInfo> {
        let history = self.write(Class::Client, Sync::Read, |tx| Ok(tx.memory.history())).await?;
        Ok(info::info(
            &self.location,
            &self.shared.options,
            history,
            &info::Origin {
                schema_version: self.schema_version,
                created: self.created,
                recovered: self.recovered,
            },
        ))
    }

    fn usage(&self) -> Usage {
        let meters = &self.shared.meters;
        let (enqueued, existing) = meters.enqueues.read();
        Usage { enqueued, existing, pools: vec![meters.writer.read(), meters.readers.read()] }
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        self.write(Class::Client, Sync::Read, info::ready_lines).await
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        let to = to.to_owned();
        let Some(from) = self.location.path().map(Path::to_owned) else {
            backup::refuse_existing(&to)?;
            return self
                .write(Class::Maintenance, Sync::Read, move |tx| {
                    Ok(backup::copy(tx.conn, &to).map_err(|error| backup::failed(&to, &error))?)
                })
                .await;
        };
        let (told, answer) = oneshot::channel();
        std::thread::Builder::new()
            .name("windlass-backup".to_owned())
            .spawn(move || {
                let _ = told.send(backup::copy_file(&from, &to));
            })
            .map_err(|error| Error::Unavailable(format!("cannot start a thread for the copy: {error}")))?;
        answer.await.map_err(|_| Error::Unavailable("the copy was lost; try again".to_owned()))?
    }

    async fn close(&self) -> Result<()> {
        let mut ended = self.shared.ended.subscribe();
        self.shared.queue.close(closed());
        // An error means that the writer has ended, which is what `close` waits for.
        let _ = ended.wait_for(|ended| *ended).await;
        match self.shared.fatal.borrow().clone() {
            Some(reason) => Err(Error::Fatal(reason)),
            None => Ok(()),
        }
    }
}
