//! The store's interface for clients and operators, over gRPC.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tonic::{Response, Status};
use windlass_core::{
    Enqueued, Error, Gates, Name, NewTask, Result, Rules, Schedules, Store, TaskId, TaskRecord, WorkerId,
    WorkerRecord,
    source::DutyReport,
    store::{
        Changed, Detail, Filter, Finding, LaneRecord, PAGE_MAX, Page, Redrive, Retention, StoreInfo,
        Summaries,
    },
    usage::{EnqueueMeter, ReadyLines, Usage},
};
use windlass_proto::{
    convert::{ms, names, some_task_id, task_id},
    v1::{self, Duty},
};

use crate::{
    call::Effect,
    channel::{Channel, Wire},
    hints::Hearing,
    options::{Options, Servers},
    push::Push,
    stream,
};

/// Longest wait for ends of tasks in one call; longer waits become several calls.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A store behind one of several servers.
pub struct RemoteStore {
    /// Everything but leases.
    pub(crate) calls: Arc<Channel>,
    /// Leases, on their own connection and thread: large answers must not delay a renewal.
    pub(crate) leases: Arc<Channel>,
    pub(crate) options: Options,
    pub(crate) hearing: Arc<Hearing>,
    rules: Rules,
    servers: Servers,
    meter: EnqueueMeter,
    closed: AtomicBool,
    /// The pushed tasks for the one worker of this store, if it has one.
    pub(crate) push: Option<Arc<Push>>,
}

impl std::fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteStore").field("servers", &self.servers.to_string()).finish_non_exhaustive()
    }
}

impl RemoteStore {
    /// Connects to one of the servers and reads the rules of the installation.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if none answers, [`Error::Invalid`] if no server has a trusted certificate or
    /// the token is refused.
    pub async fn connect(servers: &Servers, options: Options) -> Result<Arc<Self>> {
        Self::open(servers, options, None).await
    }

    /// The same for one worker, to which servers push tasks over a stream.
    ///
    /// # Errors
    /// As [`RemoteStore::connect`].
    pub async fn for_worker(servers: &Servers, options: Options) -> Result<Arc<Self>> {
        let store = Self::open(servers, options, Some(Arc::default())).await?;
        if let Some(push) = &store.push {
            stream::keep_open(&store.calls, push);
        }
        Ok(store)
    }

    async fn open(servers: &Servers, options: Options, push: Option<Arc<Push>>) -> Result<Arc<Self>> {
        let calls = Channel::new("windlass-calls", servers, &options)?;
        let leases = Channel::new("windlass-leases", servers, &options)?;
        let rules = calls
            .call(Effect::Reads, options.call_max, |wire| async move {
                wire.store().get_rules(v1::GetRulesRequest {}).await
            })
            .await
            .map_err(|error| match error {
                // The one failure that does not go away by waiting for a server.
                Error::Unavailable(why) if calls.is_unbelieved() => Error::Invalid(why),
                error => error,
            })?
            .try_into()?;
        Ok(Arc::new(Self {
            calls,
            leases,
            options,
            hearing: Arc::default(),
            rules,
            servers: servers.clone(),
            meter: EnqueueMeter::default(),
            closed: AtomicBool::new(false),
            push,
        }))
    }

    /// One page of tasks, whole or as summaries.
    async fn page<T: TryFrom<v1::Task, Error = Error>>(
        &self,
        filter: &Filter,
        detail: Detail,
        (after, limit): (Option<TaskId>, u32),
    ) -> Result<Page<T>> {
        filter.check()?;
        // A message without ids means all tasks, and not none.
        if filter.ids.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Page::default());
        }
        let request = v1::ListTasksRequest {
            after: after.map(|id| id.to_string()).unwrap_or_default(),
            limit: limit.clamp(1, PAGE_MAX),
            summary: detail == Detail::Summary,
            ..filter.into()
        };
        let answer = self.look(|wire| async move { wire.tasks().list_tasks(request).await }).await?;
        Ok(Page { tasks: all(answer.tasks)?, next: some_task_id(&answer.next)? })
    }

    /// Whether the server pushes tasks now.
    pub fn has_stream(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_open())
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Unavailable("this store was closed".to_owned()));
        }
        Ok(())
    }

    /// Makes a call that only reads.
    pub(crate) async fn look<T, F>(&self, call: impl FnOnce(Wire) -> F + Send) -> Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        self.check_open()?;
        self.calls.call(Effect::Reads, self.options.call_max, call).await
    }

    /// Makes a call that changes something.
    pub(crate) async fn change<T, F>(&self, call: impl FnOnce(Wire) -> F + Send) -> Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        self.check_open()?;
        self.calls.call(Effect::Writes, self.options.call_max, call).await
    }

    /// Runs one step of a duty.
    pub(crate) async fn duty(
        &self,
        duty: Duty,
        limit: u32,
        retention: Option<v1::Retention>,
    ) -> Result<DutyReport> {
        self.check_open()?;
        let request = v1::DutyRequest { duty: duty.into(), limit, retention };
        let call = |wire: Wire| async move { wire.store().do_duty(request).await };
        // The next step repeats a step whose answer was lost.
        self.calls.call(Effect::Reads, self.options.long_call_max, call).await?.try_into()
    }
}

/// Converts messages to values.
pub(crate) fn all<M, T: TryFrom<M, Error = Error>>(messages: Vec<M>) -> Result<Vec<T>> {
    messages.into_iter().map(TryInto::try_into).collect()
}

/// Turns "not found" into `None`.
pub(crate) fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Store for RemoteStore {
    fn rules(&self) -> &Rules {
        &self.rules
    }

    async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<Vec<Enqueued>> {
        self.check_open()?;
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let request = v1::EnqueueBatchRequest { tasks: tasks.into_iter().map(Into::into).collect() };
        let answer = self.change(|wire| async move { wire.tasks().enqueue_batch(request).await }).await?;
        let enqueued = all(answer.tasks)?;
        self.meter.count(&enqueued);
        Ok(enqueued)
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>> {
        let request = v1::GetTaskRequest { task_id: id.to_string() };
        let answer = self.look(|wire| async move { wire.tasks().get_task(request).await }).await;
        found(answer)?.map(TryInto::try_into).transpose()
    }

    async fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Page> {
        self.page(filter, Detail::Whole, (after, limit)).await
    }

    async fn summaries(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Result<Summaries> {
        self.page(filter, Detail::Summary, (after, limit)).await
    }

    async fn ended(&self, ids: &[TaskId], wait: Duration) -> Result<Vec<(TaskId, Option<TaskRecord>)>> {
        self.check_open()?;
        let started = Instant::now();
        loop {
            let left = wait.saturating_sub(started.elapsed());
            let request = v1::WaitTasksRequest {
                task_ids: ids.iter().map(ToString::to_string).collect(),
                timeout_ms: ms(left.min(WAIT_MAX)),
            };
            let max = self.options.call_max + WAIT_MAX;
            let call = |wire: Wire| async move { wire.tasks().wait_tasks(request).await };
            let answer = self.calls.call(Effect::Reads, max, call).await?;
            if answer.ended.is_empty() && answer.missing.is_empty() && left > WAIT_MAX {
                continue;
            }
            let mut ended = Vec::new();
            for task in all::<_, TaskRecord>(answer.ended)? {
                ended.push((task.id, Some(task)));
            }
            for id in &answer.missing {
                ended.push((task_id(id)?, None));
            }
            return Ok(ended);
        }
    }

    async fn cancel(&self, ids: &[TaskId], reason: &str) -> Result<Vec<Changed>> {
        let request = v1::CancelTasksRequest {
            task_ids: ids.iter().map(ToString::to_string).collect(),
            reason: reason.to_owned(),
        };
        all(self.change(|wire| async move { wire.tasks().cancel_tasks(request).await }).await?.tasks)
    }

    async fn redrive(&self, tasks: &[Redrive]) -> Result<Vec<Changed>> {
        let tasks =
            tasks.iter().map(|task| v1::RetryTask { task_id: task.id.to_string(), delay_ms: ms(task.delay) });
        let request = v1::RetryTasksRequest { tasks: tasks.collect() };
        all(self.change(|wire| async move { wire.tasks().retry_tasks(request).await }).await?.tasks)
    }

    async fn remove(&self, ids: &[TaskId]) -> Result<Vec<Changed>> {
        let request = v1::RemoveTasksRequest { task_ids: ids.iter().map(ToString::to_string).collect() };
        all(self.change(|wire| async move { wire.tasks().remove_tasks(request).await }).await?.tasks)
    }

    async fn key_holder(&self, queue: &Name, key: &str) -> Result<Option<TaskId>> {
        let request = v1::FindKeyRequest { queue: queue.to_string(), key: key.to_owned() };
        let answer = self.look(|wire| async move { wire.tasks().find_key(request).await }).await?;
        some_task_id(&answer.task_id)
    }

    async fn lane_records(&self) -> Result<Vec<LaneRecord>> {
        let request = v1::ListQueuesRequest {};
        all(self.look(|wire| async move { wire.control().list_queues(request).await }).await?.lanes)
    }

    async fn set_queue_paused(&self, queue: &Name, paused: bool) -> Result<bool> {
        let request = v1::SetQueueRequest { queue: queue.to_string(), paused };
        Ok(self.change(|wire| async move { wire.control().set_queue(request).await }).await?.changed)
    }

    async fn paused_queues(&self) -> Result<Vec<Name>> {
        let request = v1::ListQueuesRequest {};
        let answer = self.look(|wire| async move { wire.control().list_queues(request).await }).await?;
        names("queue", &answer.paused)
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>> {
        let request = v1::ListWorkersRequest {};
        all(self.look(|wire| async move { wire.workers().list_workers(request).await }).await?.workers)
    }

    async fn set_worker_slots(&self, worker: WorkerId, slots: u32) -> Result<()> {
        let request = v1::SetWorkerRequest { worker_id: worker.to_string(), max_capacity: slots };
        self.change(|wire| async move { wire.workers().set_worker(request).await }).await.map(|_| ())
    }

    async fn retain(&self, retention: &Retention) -> Result<DutyReport> {
        self.duty(Duty::Retain, 0, Some(retention.into())).await
    }

    fn gates(&self) -> &dyn Gates {
        self
    }

    fn schedules(&self) -> &dyn Schedules {
        self
    }

    async fn audit(&self) -> Result<Vec<Finding>> {
        self.check_open()?;
        let call = |wire: Wire| async move { wire.store().audit(v1::AuditRequest {}).await };
        all(self.calls.call(Effect::Reads, self.options.long_call_max, call).await?.findings)
    }

    async fn info(&self) -> Result<StoreInfo> {
        let request = v1::GetInfoRequest {};
        Ok(self.look(|wire| async move { wire.store().get_info(request).await }).await?.into())
    }

    fn usage(&self) -> Usage {
        let (enqueued, existing) = self.meter.read();
        Usage { enqueued, existing, pools: Vec::new() }
    }

    async fn ready_lines(&self) -> Result<ReadyLines> {
        let request = v1::GetReadyLinesRequest {};
        self.look(|wire| async move { wire.store().get_ready_lines(request).await }).await?.try_into()
    }

    async fn backup(&self, _to: &Path) -> Result<()> {
        Err(Error::Unsupported("a store is copied on the machine that has it".to_owned()))
    }

    /// Closes this client; the server and its store continue.
    async fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        Ok(())
    }
}
