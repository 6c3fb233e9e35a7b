//! The inbox of pushed tasks: one of the servers sends tasks over a stream, as many as this worker has free
//! slots.
//!
//! ```text
//! coordinator ──claim(n)──► inbox ──► tasks that were pushed, without a call
//!                  └──credit──► stream ──► server claims, pushes ──► inbox ──hints──► coordinator
//! ```
//!
//! `credit` is how many tasks the stream may have brought in total. So tasks on their way are never counted
//! twice, and no more arrive than there are free slots. Without a stream the worker claims by calls. When a
//! stream opens, the worker sends the leases that it holds, and the store hands back the others.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::{Notify, mpsc};
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Hint, LaneId, LeaseRef, NewWorker, SettleBatch, TaskId, Timestamp,
    WorkerId, source::Rest,
};
use windlass_proto::v1;

/// Most claims of one stream whose tasks never arrived. The next stream numbers its claims above all of them.
/// Tasks that an earlier stream claims late, at any server, are then known to be lost.
const UNSEEN_MAX: u64 = 1 << 20;
/// Most unread hints of a slow subscriber.
const HINTS_MAX: usize = 64;
/// So many claims in a row may leave a task here before the coordinator is told to read the lanes again. A
/// worker with many lanes names them in turns, so one claim says little.
const PASSED_OVER_MIN: u32 = 64;

/// The state of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// There is no stream.
    #[default]
    Closed,
    /// The list of held leases has been made and is being sent to the server. A claim by a call must wait:
    /// the store would hand back its tasks, because they are not in that list.
    Opening,
    /// The server pushes tasks.
    Open,
}

/// The state of one worker.
#[derive(Default)]
struct State {
    worker: Option<(WorkerId, NewWorker)>,
    stage: Stage,
    /// Claims by calls that have no answer yet.
    calls: u32,
    inbox: VecDeque<Claimed>,
    /// Leases of this worker that are not settled.
    held: HashMap<TaskId, u32>,
    /// Tasks that this stream has brought, and the most that it may have brought.
    received: u64,
    credit: u64,
    /// All tasks claimed for this worker up to this number have arrived or are lost.
    claim_no: u64,
    /// The coordinator's number of its last claim by a call, and the number that was sent to the server.
    last_call: Option<(u64, u64)>,
    clock: Option<(Timestamp, Instant)>,
    /// Lanes of which a task has come.
    lanes: HashSet<LaneId>,
    /// Claims in a row that left tasks here because they did not name their lanes.
    passed_over: u32,
    listeners: Vec<mpsc::Sender<Hint>>,
}

/// The inbox of one worker.
#[derive(Default)]
pub(crate) struct Push {
    state: Mutex<State>,
    /// Notified when the worker, its credit or its calls have changed.
    pub(crate) changed: Notify,
}

/// How to serve a claim.
pub(crate) enum Claim {
    /// It is answered from the inbox.
    Answered(ClaimAnswer),
    /// It is sent to the server under this number.
    Call(u64),
}

impl Push {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new registration: leases of the old one are no longer ours.
    pub(crate) fn registered(&self, worker: WorkerId, introduction: NewWorker) {
        let mut state = self.state();
        state.worker = Some((worker, introduction));
        state.inbox.clear();
        state.held.clear();
        drop(state);
        self.changed.notify_one();
    }

    /// The registration has ended.
    pub(crate) fn ended(&self, worker: WorkerId) {
        let mut state = self.state();
        if state.worker.as_ref().is_some_and(|(known, _)| *known == worker) {
            state.worker = None;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Answers a claim of the coordinator, or returns the number for a call.
    pub(crate) fn claim(&self, demand: &Demand) -> Claim {
        let mut state = self.state();
        let is_ours = state.worker.as_ref().is_some_and(|(worker, _)| *worker == demand.worker);
        let by_call = !is_ours || (state.stage == Stage::Closed && state.inbox.is_empty());
        let (Some((clock, at)), false) = (state.clock, by_call) else {
            state.claim_no += 1;
            state.calls += 1;
            state.last_call = Some((demand.claim_no, state.claim_no));
            return Claim::Call(state.claim_no);
        };
        let n = demand.n as usize;
        // Only tasks of lanes that the coordinator knows; it has just been told of the other lanes.
        let (tasks, kept) = split(std::mem::take(&mut state.inbox), &demand.lanes, n);
        state.inbox = kept;
        // The coordinator may have forgotten a lane that was retired and is back, and the hint that said so
        // may be lost.
        let is_left = state.inbox.iter().any(|task| !demand.lanes.contains(&task.lane.id));
        state.passed_over = if is_left { state.passed_over.saturating_add(1) } else { 0 };
        let must_tell = state.passed_over >= PASSED_OVER_MIN && state.passed_over.is_power_of_two();
        let taken = tasks.len();
        let free = (n - taken).saturating_sub(state.inbox.len()) as u64;
        let credit = state.received + free;
        if state.credit != credit {
            state.credit = credit;
            self.changed.notify_one();
        }
        let rest = if taken == n { Rest::More } else { Rest::Nothing };
        drop(state);
        if must_tell {
            self.ring(&Hint::Lanes);
        }
        Claim::Answered(ClaimAnswer { tasks, rest, next_due: None, now: clock.after(at.elapsed()) })
    }

    /// A claim by a call was answered, or its answer is lost.
    pub(crate) fn called(&self, answer: Option<&ClaimAnswer>) {
        let mut state = self.state();
        state.calls = state.calls.saturating_sub(1);
        if let Some(answer) = answer {
            state.clock = Some((answer.now, Instant::now()));
            for task in &answer.tasks {
                state.held.insert(task.id, task.lease);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The number under which a claim of the coordinator was sent to the server; `None` if it was answered
    /// here.
    pub(crate) fn number_of(&self, claim_no: u64) -> Option<u64> {
        let last = self.state().last_call;
        last.filter(|(asked, _)| *asked == claim_no).map(|(_, number)| number)
    }

    /// Removes settled leases.
    pub(crate) fn settled(&self, batch: &SettleBatch) {
        let mut state = self.state();
        for item in &batch.items {
            if state.held.get(&item.lease.id) == Some(&item.lease.lease) {
                state.held.remove(&item.lease.id);
            }
        }
    }

    /// Removes leases that the store does not give this worker: their tasks in the inbox must not start.
    pub(crate) fn lost(&self, leases: &[LeaseRef]) {
        let mut state = self.state();
        for lease in leases {
            if state.held.get(&lease.id) == Some(&lease.lease) {
                state.held.remove(&lease.id);
            }
            state.inbox.retain(|task| task.id != lease.id || task.lease != lease.lease);
        }
    }

    /// The leases that the worker holds, and the number up to which every claim has arrived.
    pub(crate) fn holds(&self, in_flight: &[LeaseRef]) -> (u64, Vec<LeaseRef>) {
        let state = self.state();
        let mut held = state.held.clone();
        held.extend(in_flight.iter().map(|lease| (lease.id, lease.lease)));
        // A running claim by a call may have taken tasks that are not here yet.
        let arrived = if state.calls > 0 { state.claim_no.saturating_sub(1) } else { state.claim_no };
        (arrived, held.into_iter().map(|(id, lease)| LeaseRef { id, lease }).collect())
    }

    /// Whether the store's clock is known.
    pub(crate) fn has_clock(&self) -> bool {
        self.state().clock.is_some()
    }

    /// Sets the store's clock.
    pub(crate) fn set_clock(&self, now: Timestamp) {
        self.state().clock = Some((now, Instant::now()));
    }

    /// The first message of a stream, once no claim by a call is running and the store's clock is known: from
    /// then on claims are answered here, with a time.
    pub(crate) fn hello(&self) -> Option<(WorkerId, v1::Hello)> {
        let mut state = self.state();
        let (worker, introduction) = state.worker.clone()?;
        if state.calls > 0 || state.clock.is_none() {
            return None;
        }
        state.stage = Stage::Opening;
        state.claim_no = state.claim_no.saturating_add(UNSEEN_MAX);
        let held = state.held.iter().map(|(id, lease)| LeaseRef { id: *id, lease: *lease }.into());
        let hello = v1::Hello {
            worker_id: worker.to_string(),
            register: Some(introduction.into()),
            in_flight: held.collect(),
            up_to_claim_no: state.claim_no,
        };
        Some((worker, hello))
    }

    /// The stream is open. Claims of earlier streams, up to this number, have arrived or are lost, and the
    /// server refuses new claims with such numbers.
    pub(crate) fn opened(&self, now: Timestamp, claim_no: u64) {
        let mut state = self.state();
        state.stage = Stage::Open;
        state.claim_no = state.claim_no.max(claim_no);
        (state.received, state.credit) = (0, 0);
        state.clock = Some((now, Instant::now()));
        drop(state);
        // The hint makes the coordinator claim, and so report its free slots.
        self.ring(&Hint::Ready);
    }

    /// The stream has ended. The numbers of claims that the server may still make for it, and undo, are below
    /// all that follow.
    pub(crate) fn closed(&self) {
        let mut state = self.state();
        if state.stage != Stage::Closed {
            state.stage = Stage::Closed;
            state.claim_no = state.claim_no.saturating_add(UNSEEN_MAX);
        }
        drop(state);
        self.ring(&Hint::Ready);
    }

    /// Adds pushed tasks. Tasks of another registration are dropped, because the store has taken them back
    /// already.
    pub(crate) fn received(&self, tasks: Vec<Claimed>) {
        let mut state = self.state();
        state.received += tasks.len() as u64;
        let ours = state.worker.as_ref().map(|(worker, _)| *worker);
        let mut has_new_lane = false;
        for task in tasks {
            has_new_lane |= state.lanes.insert(task.lane.id);
            state.claim_no = state.claim_no.max(task.claim_no);
            if Some(task.worker) == ours {
                state.held.insert(task.id, task.lease);
                state.inbox.push_back(task);
            }
        }
        drop(state);
        if has_new_lane {
            self.ring(&Hint::Lanes);
        }
        self.ring(&Hint::Ready);
    }

    /// Whether a stream for this worker is needed.
    pub(crate) fn serves(&self, worker: WorkerId) -> bool {
        self.state().worker.as_ref().is_some_and(|(known, _)| *known == worker)
    }

    /// How many tasks the stream may have brought in total.
    pub(crate) fn credit(&self) -> u64 {
        self.state().credit
    }

    /// Whether the server pushes tasks.
    pub(crate) fn is_open(&self) -> bool {
        self.state().stage == Stage::Open
    }

    /// Adds a subscriber.
    pub(crate) fn listen(&self) -> mpsc::Receiver<Hint> {
        let (tell, told) = mpsc::channel(HINTS_MAX);
        self.state().listeners.push(tell);
        told
    }

    pub(crate) fn ring(&self, hint: &Hint) {
        // A full subscriber will claim anyway; a dropped one is removed.
        self.state().listeners.retain(|listener| {
            !matches!(listener.try_send(hint.clone()), Err(mpsc::error::TrySendError::Closed(_)))
        });
    }
}

/// Up to `n` tasks of these lanes, and the rest.
fn split(inbox: VecDeque<Claimed>, lanes: &[LaneId], n: usize) -> (Vec<Claimed>, VecDeque<Claimed>) {
    let (mut taken, mut kept) = (Vec::new(), VecDeque::new());
    for task in inbox {
        if taken.len() < n && lanes.contains(&task.lane.id) {
            taken.push(task);
        } else {
            kept.push_back(task);
        }
    }
    (taken, kept)
}

#[cfg(test)]
mod tests;
