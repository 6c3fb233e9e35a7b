//! Push: one loop claims tasks for every connected worker and sends them down the workers' streams.
//!
//! ```text
//! credit of a stream ┐                              ┌─► stream of a worker (bounded; skipped if full)
//! hint of the store  ├─► round: claims per class ───┤
//! due time, poll     ┘   of equal lanes             └─► tasks that could not be sent: claim undone at once
//! ```
//!
//! A worker states its credit: how many tasks in all its stream may have brought. The hub counts a claim
//! against the credit before it sends the tasks, so a worker never gets more tasks than it has slots. Every
//! claim has its own number. If the answer of a claim is lost, or its stream ends before anything is sent,
//! the hub undoes that claim only.
//!
//! Its folder: [`member`] (a worker as the hub sees it), [`shares`] (how many tasks each gets in a round),
//! [`straight`] (push of a new task to a waiting worker), [`preferences`] (which worker a workflow prefers),
//! [`downstream`] (what is sent to a worker).

pub(super) mod downstream;
pub(super) mod member;
pub(super) mod preferences;
mod shares;
pub(super) mod straight;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::Instant,
};
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Error, Hint, LaneId, LeaseRef, Name, Result, Timestamp, WorkerId,
    affinity::{LastRan, Prefers},
    source::Rest,
    store::SharedStore,
};
use windlass_proto::v1::{self, work_down::Message};

use self::{
    member::{Down, Member},
    preferences::{Affinity, Preferences},
    shares::{Claim, claims, next_batch},
};
use super::status;

/// How long the loop sleeps at most, in case a hint is lost (HINTS-ONLY).
const POLL: Duration = Duration::from_secs(1);
/// Pause after a failed claim.
const FAILED_PAUSE: Duration = Duration::from_millis(200);
/// Most tasks that become ready in one step because their time has come.
const DUE_MAX: u32 = 1_000;
/// How often the hub tries to undo a claim. After that the worker returns the tasks when it next compares its
/// leases.
const UNDO_TRIES: u32 = 5;

/// Every connected worker.
pub(super) struct Hub {
    pub(super) store: SharedStore,
    /// A worker that reports claim number N states that it has every claim up to N; the store hands back the
    /// tasks of those claims that the worker does not hold. A claim that arrives after a later one would be
    /// handed back while it is sent. So this lock is held from the number of a claim until its tasks are
    /// sent.
    pub(super) claiming: Arc<AsyncMutex<()>>,
    members: Mutex<BTreeMap<u64, Member>>,
    /// Which worker ended the last step of each workflow.
    preferences: Arc<Preferences>,
    streams: AtomicU64,
    /// Rises with every claim that brought tasks, so that the next round starts with another worker.
    turn: AtomicU64,
    wake: Arc<Notify>,
}

impl Hub {
    pub(super) fn new(store: SharedStore, affinity: Affinity) -> Arc<Self> {
        Arc::new(Self {
            store,
            claiming: Arc::default(),
            members: Mutex::default(),
            preferences: Arc::new(Preferences::new(affinity)),
            streams: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            wake: Arc::default(),
        })
    }

    pub(super) fn members(&self) -> MutexGuard<'_, BTreeMap<u64, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a worker. It leaves when the seat is dropped.
    pub(super) fn join(self: &Arc<Self>, mut member: Member) -> Seat {
        member.wakes(&self.wake);
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        self.members().insert(stream, member);
        Seat { hub: Arc::clone(self), stream }
    }

    /// Tasks claimed for a stream that its worker no longer reads would be stuck. So when a worker opens
    /// another stream, its older ones end.
    pub(super) fn dismiss(&self, worker: WorkerId) {
        self.members().retain(|_, member| member.worker != worker);
    }

    fn change(&self, stream: u64, change: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members().get_mut(&stream) {
            change(member);
        }
        self.wake.notify_one();
    }

    /// Runs until `closed` resolves; then asks every worker to connect to another server.
    pub(super) async fn run(self: Arc<Self>, closed: impl Future<Output = ()>) {
        let mut closed = std::pin::pin!(closed);
        let mut hints = self.store.hints();
        let mut due: Option<Instant> = None;
        loop {
            let until = due.map_or(Instant::now() + POLL, |due| due.min(Instant::now() + POLL));
            tokio::select! {
                () = &mut closed => break,
                () = self.wake.notified() => {}
                hint = hints.next() => match hint {
                    Hint::Ready => {}
                    Hint::Due(_) => due = Some(Instant::now()),
                    Hint::Lanes => self.refresh_lanes().await,
                    // Each worker finds its lost leases when it compares them with the store.
                    Hint::Lost(_) => continue,
                    Hint::Cancel(lease, reason) => {
                        self.tell_cancel(lease, reason).await;
                        continue;
                    }
                },
                // Any hint may be lost, also the one about a new lane.
                () = tokio::time::sleep_until(until) => self.refresh_lanes().await,
            }
            if self.members().is_empty() {
                // Without workers the due time is not needed: the next round after a worker joins asks the
                // store.
                due = None;
                continue;
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                due = None;
                // A failure needs no handling: the next poll, of this loop or of any worker, tries again.
                let _ = self.store.promote_due(DUE_MAX).await;
            }
            loop {
                let (is_more, next_due) = self.round().await;
                if let Some(left) = next_due {
                    let at = Instant::now() + left;
                    due = Some(due.map_or(at, |due| due.min(at)));
                }
                if !is_more {
                    break;
                }
            }
        }
        self.tell_all(&Message::Drain(v1::Drain { reason: "the server stops".to_owned() }));
    }

    /// Reads the lanes of every worker again.
    async fn refresh_lanes(&self) {
        let served: BTreeSet<_> =
            self.members().values().map(|member| (member.kinds.clone(), member.queues.clone())).collect();
        for (kinds, queues) in served {
            let Ok(lanes) = self.lanes(&kinds, &queues).await else { continue };
            for member in self.members().values_mut() {
                if member.kinds == kinds && member.queues == queues {
                    member.lanes = Arc::clone(&lanes);
                }
            }
        }
    }

    /// Sends a cancellation to the workers. A worker with a bound token may see only its own tasks: if there
    /// is such a worker, the hub looks up the task's holder. If the look-up fails, that worker receives the
    /// cancellation with its next heartbeat.
    async fn tell_cancel(&self, lease: LeaseRef, reason: String) {
        let has_bound = self.members().values().any(|member| member.is_bound);
        let task = if has_bound { self.store.task(lease.id).await.ok().flatten() } else { None };
        let holder = task.filter(|task| task.lease == lease.lease).and_then(|task| task.worker);
        let message =
            Message::Cancel(v1::Cancellation { task_id: lease.id.to_string(), lease: lease.lease, reason });
        self.tell(&message, |member| !member.is_bound || holder == Some(member.worker));
    }

    fn tell_all(&self, message: &Message) {
        self.tell(message, |_| true);
    }

    fn tell(&self, message: &Message, hears: impl Fn(&Member) -> bool) {
        for member in self.members().values().filter(|member| hears(member)) {
            // A worker with a full stream receives it with its next heartbeat.
            let _ = member.down.try_send(Down::Message(Box::new(message.clone())));
        }
    }

    /// Makes one claim per class. Returns whether there may be more tasks, and how long until one is due.
    async fn round(&self) -> (bool, Option<Duration>) {
        let wants: Vec<_> = {
            let preferred = self.preferences.counts(Instant::now());
            let members = self.members();
            let wants = members.iter().map(|(stream, member)| {
                member.want(*stream, preferred.get(&member.worker).copied().unwrap_or(0))
            });
            wants.collect()
        };
        let (mut is_more, mut next_due) = (false, None);
        for claim in claims(&wants, self.turn.load(Ordering::Relaxed)) {
            if let Some((answer, got)) = self.claim(&claim).await {
                if got > 0 {
                    self.turn.fetch_add(1, Ordering::Relaxed);
                }
                is_more |= answer.rest == Rest::More;
                let left = |due: Timestamp| due.since(answer.now);
                next_due = next_due.into_iter().chain(answer.next_due.map(left)).min();
            }
        }
        (is_more, next_due)
    }

    /// Claims for one class and sends the tasks. Returns how many there were.
    async fn claim(&self, (lanes, shares): &Claim) -> Option<(ClaimAnswer, u32)> {
        let claiming = self.claiming.lock().await;
        let demands = self.reserve(lanes, shares);
        if demands.is_empty() {
            return None;
        }
        let wanted: Vec<_> = demands.iter().map(|(_, demand)| demand.clone()).collect();
        match self.store.claim(&wanted).await {
            Ok(mut answer) => {
                let got = u32::try_from(answer.tasks.len()).unwrap_or(u32::MAX);
                self.preferences.met(answer.tasks.iter().filter_map(|task| task.workflow.as_ref()));
                self.hand_out(&demands, std::mem::take(&mut answer.tasks)).await;
                Some((answer, got))
            }
            Err(error) => {
                drop(claiming);
                for (stream, demand) in &demands {
                    self.give_back(*stream, demand);
                }
                self.failed(&demands, error).await;
                None
            }
        }
    }

    /// Takes back from the count what was reserved for a worker and not claimed.
    pub(super) fn give_back(&self, stream: u64, demand: &Demand) {
        self.change(stream, |member| member.sent = member.sent.saturating_sub(demand.n.into()));
    }

    /// Gives a claim number to each worker, and counts the claim against its credit before the claim is made.
    pub(super) fn reserve(&self, lanes: &Arc<[LaneId]>, shares: &[(u64, u32)]) -> Vec<(u64, Demand)> {
        // A single worker needs no preference: it gets every task of the claim.
        let prefers = match shares.len() {
            0 | 1 => Prefers::Nothing,
            _ => Prefers::LastRan(Arc::clone(&self.preferences) as Arc<dyn LastRan>),
        };
        let mut members = self.members();
        let mut demands = Vec::with_capacity(shares.len());
        for (stream, n) in shares {
            let Some(member) = members.get_mut(stream) else { continue };
            let n = (*n).min(u32::try_from(member.credit.saturating_sub(member.sent)).unwrap_or(u32::MAX));
            if n == 0 {
                continue;
            }
            member.claim_no += 1;
            member.sent += u64::from(n);
            let plain = Demand::new(member.worker, member.claim_no, Arc::clone(lanes), n);
            demands.push((*stream, Demand { prefers: prefers.clone(), ..plain }));
        }
        demands
    }

    async fn hand_out(&self, demands: &[(u64, Demand)], tasks: Vec<Claimed>) {
        let mut of: BTreeMap<WorkerId, Vec<Claimed>> = BTreeMap::new();
        for task in tasks {
            of.entry(task.worker).or_default().push(task);
        }
        let mut unsent = Vec::new();
        for (stream, demand) in demands {
            let tasks = of.remove(&demand.worker).unwrap_or_default();
            let got = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
            if let Some(member) = self.members().get_mut(stream) {
                member.batch = next_batch(member.batch, demand.n, got);
            }
            if !self.send(*stream, demand, tasks) {
                unsent.push(demand.clone());
            }
        }
        for demand in unsent {
            self.undo(&demand).await;
        }
    }

    /// Sends the tasks of a claim. Returns false if the stream is gone or full.
    pub(super) fn send(&self, stream: u64, demand: &Demand, tasks: Vec<Claimed>) -> bool {
        let got = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        let mut members = self.members();
        let Some(member) = members.get_mut(&stream) else { return got == 0 };
        member.sent = member.sent.saturating_sub(demand.n.saturating_sub(got).into());
        let is_sent = got == 0 || member.send(tasks);
        if !is_sent {
            member.sent = member.sent.saturating_sub(got.into());
        }
        is_sent
    }

    async fn failed(&self, demands: &[(u64, Demand)], error: Error) {
        match (error, demands) {
            (Error::WorkerExpired, [(stream, _)]) => {
                let member = self.members().remove(stream);
                if let Some(member) = member {
                    let _ = member.down.try_send(Down::Refused(status(Error::WorkerExpired)));
                }
            }
            // One worker of the claim has expired, and the store refused the claim as a whole. Claim once
            // more for each worker alone.
            (Error::WorkerExpired, _) => {
                for (stream, demand) in demands {
                    let alone = (Arc::clone(&demand.lanes), vec![(*stream, demand.n)]);
                    Box::pin(self.claim(&alone)).await;
                }
            }
            (Error::Unknown(why), _) => {
                tracing::warn!(why, "the answer to a claim for connected workers was lost; undoing it");
                for (_, demand) in demands {
                    self.undo(demand).await;
                }
            }
            (error, _) => {
                tracing::debug!(%error, "a claim for connected workers failed");
                tokio::time::sleep(FAILED_PAUSE).await;
            }
        }
    }

    /// Hands back all tasks of a claim.
    pub(super) async fn undo(&self, demand: &Demand) {
        for _ in 0..UNDO_TRIES {
            match self.store.unclaim(demand.worker, demand.claim_no).await {
                Ok(_) | Err(Error::WorkerExpired | Error::NotFound(_)) => return,
                Err(_) => tokio::time::sleep(FAILED_PAUSE).await,
            }
        }
        tracing::warn!(worker = %demand.worker, claim_no = demand.claim_no, "a claim could not be undone yet");
    }

    /// The lanes that a worker serves.
    pub(super) async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Arc<[LaneId]>> {
        Ok(self.store.lanes(kinds, queues).await?.iter().map(|lane| lane.id).collect())
    }

    /// Notes that a worker is about to end steps of these workflows. Call it before the commit: the hint that
    /// the next steps are ready may arrive before the answer to the commit.
    pub(super) fn prefer<'a>(&self, worker: WorkerId, workflows: impl Iterator<Item = &'a Name>) {
        let mut workflows = workflows.peekable();
        if workflows.peek().is_some() && self.serves(worker) {
            self.preferences.note(workflows, worker, Instant::now());
        }
    }

    /// Whether a worker has a stream here.
    fn serves(&self, worker: WorkerId) -> bool {
        self.members().values().any(|member| member.worker == worker)
    }
}

/// A worker's membership in the hub; it ends when this is dropped.
pub(super) struct Seat {
    hub: Arc<Hub>,
    stream: u64,
}

impl Seat {
    /// Sets how many tasks in all the stream may have brought.
    pub(super) fn set_credit(&self, tasks: u64) {
        self.hub.change(self.stream, |member| member.credit = tasks);
    }

    /// Stops claims for this worker.
    pub(super) fn stop(&self) {
        self.hub.change(self.stream, |member| member.credit = 0);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.members().remove(&self.stream);
    }
}
