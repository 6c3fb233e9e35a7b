//! Tasks that come by themselves: a stream to one of the servers, over which it pushes what this worker has slots for.
//!
//! ```text
//! coordinator ──claim(n)──► inbox ──► tasks that were pushed, without a call
//!                  └──credit──► stream ──► server claims, pushes ──► inbox ──rings──► coordinator
//! ```
//!
//! `credit` is how many tasks the stream may have brought in all, so what is on its way is never counted twice and no more than the
//! free slots arrive. While there is no stream the worker claims by calls. When a stream opens, the worker says which leases it
//! holds and the store hands back the rest.

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

/// Claims that one stream may have made of which nothing arrived. The next stream and its claims are numbered above all of them, so
/// that whatever an earlier one took late, at whichever server, is known to be lost.
const UNSEEN_MAX: u64 = 1 << 20;
/// Hints that a slow listener has not taken.
const HINTS_MAX: usize = 64;

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// There is none.
    #[default]
    Closed,
    /// What is held has been written down and is on its way to the server: nothing may be claimed by a call meanwhile, or it would be
    /// handed back.
    Opening,
    /// Tasks come by themselves.
    Open,
}

/// What is known of one worker.
#[derive(Default)]
struct State {
    worker: Option<(WorkerId, NewWorker)>,
    stage: Stage,
    /// Claims by calls that are under way.
    calls: u32,
    inbox: VecDeque<Claimed>,
    /// Leases of this worker that have not been settled.
    held: HashMap<TaskId, u32>,
    /// Tasks that this stream has brought, and that it may have brought.
    received: u64,
    credit: u64,
    /// Whatever was claimed for this worker up to this number has arrived or is lost.
    claim_no: u64,
    /// The coordinator's number of its last claim by a call, and the number that it went under.
    last_call: Option<(u64, u64)>,
    clock: Option<(Timestamp, Instant)>,
    /// Lanes of which something has come.
    lanes: HashSet<LaneId>,
    listeners: Vec<mpsc::Sender<Hint>>,
}

/// The inbox of one worker.
#[derive(Default)]
pub(crate) struct Push {
    state: Mutex<State>,
    /// The worker, its credit or its calls have changed.
    pub(crate) changed: Notify,
}

/// What to do about a claim.
pub(crate) enum Claim {
    /// It is answered from the inbox.
    Answered(ClaimAnswer),
    /// It goes to the server under this number.
    Call(u64),
}

impl Push {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new registration: what the one before held is no longer ours.
    pub(crate) fn registered(&self, worker: WorkerId, introduction: NewWorker) {
        let mut state = self.state();
        state.worker = Some((worker, introduction));
        state.inbox.clear();
        state.held.clear();
        drop(state);
        self.changed.notify_one();
    }

    /// The registration is over.
    pub(crate) fn ended(&self, worker: WorkerId) {
        let mut state = self.state();
        if state.worker.as_ref().is_some_and(|(known, _)| *known == worker) {
            state.worker = None;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Answers a claim of the coordinator, or says under which number to make a call of it.
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
        // Of lanes that the coordinator knows: it has just been told of the others.
        let (tasks, kept) = split(std::mem::take(&mut state.inbox), &demand.lanes, n);
        state.inbox = kept;
        let taken = tasks.len();
        let free = (n - taken).saturating_sub(state.inbox.len()) as u64;
        let credit = state.received + free;
        if state.credit != credit {
            state.credit = credit;
            self.changed.notify_one();
        }
        let rest = if taken == n { Rest::More } else { Rest::Nothing };
        Claim::Answered(ClaimAnswer { tasks, rest, next_due: None, now: clock.after(at.elapsed()) })
    }

    /// A claim by a call has come back, or is lost.
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

    /// The number under which a claim of the coordinator went to the server; none if it was answered here.
    pub(crate) fn number_of(&self, claim_no: u64) -> Option<u64> {
        let last = self.state().last_call;
        last.filter(|(asked, _)| *asked == claim_no).map(|(_, number)| number)
    }

    /// Ends that are written.
    pub(crate) fn settled(&self, batch: &SettleBatch) {
        let mut state = self.state();
        for item in &batch.items {
            if state.held.get(&item.lease.id) == Some(&item.lease.lease) {
                state.held.remove(&item.lease.id);
            }
        }
    }

    /// Leases that the store does not give this worker: what came and has not been asked for yet does not start.
    pub(crate) fn lost(&self, leases: &[LeaseRef]) {
        let mut state = self.state();
        for lease in leases {
            if state.held.get(&lease.id) == Some(&lease.lease) {
                state.held.remove(&lease.id);
            }
            state.inbox.retain(|task| task.id != lease.id || task.lease != lease.lease);
        }
    }

    /// What the worker owns up to, and the number up to which every claim has arrived.
    pub(crate) fn holds(&self, in_flight: &[LeaseRef]) -> (u64, Vec<LeaseRef>) {
        let state = self.state();
        let mut held = state.held.clone();
        held.extend(in_flight.iter().map(|lease| (lease.id, lease.lease)));
        // A claim by a call that is under way may have taken something that is not here yet.
        let arrived = if state.calls > 0 { state.claim_no.saturating_sub(1) } else { state.claim_no };
        (arrived, held.into_iter().map(|(id, lease)| LeaseRef { id, lease }).collect())
    }

    /// Whether the store's clock has been read.
    pub(crate) fn has_clock(&self) -> bool {
        self.state().clock.is_some()
    }

    /// A reading of the store's clock.
    pub(crate) fn set_clock(&self, now: Timestamp) {
        self.state().clock = Some((now, Instant::now()));
    }

    /// What a stream starts with, once no claim by a call is under way and the store's clock is known: from then on claims are
    /// answered here, with a time.
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

    /// The stream is open. Claims of earlier ones, which went up to this number, have arrived or are lost, and the server lets nobody
    /// claim under such a number any more.
    pub(crate) fn opened(&self, now: Timestamp, claim_no: u64) {
        let mut state = self.state();
        state.stage = Stage::Open;
        state.claim_no = state.claim_no.max(claim_no);
        (state.received, state.credit) = (0, 0);
        state.clock = Some((now, Instant::now()));
        drop(state);
        // The coordinator looks, and with that says how much it can take.
        self.ring(&Hint::Ready);
    }

    /// The stream is gone. What the server may still claim for it, and undo, is numbered below everything that follows.
    pub(crate) fn closed(&self) {
        let mut state = self.state();
        if state.stage != Stage::Closed {
            state.stage = Stage::Closed;
            state.claim_no = state.claim_no.saturating_add(UNSEEN_MAX);
        }
        drop(state);
        self.ring(&Hint::Ready);
    }

    /// Tasks have come; those of another registration are dropped: the store has them back already.
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

    /// Whether a stream for this worker is of use.
    pub(crate) fn serves(&self, worker: WorkerId) -> bool {
        self.state().worker.as_ref().is_some_and(|(known, _)| *known == worker)
    }

    /// How many tasks in all the stream may have brought.
    pub(crate) fn credit(&self) -> u64 {
        self.state().credit
    }

    /// Whether tasks come by themselves.
    pub(crate) fn is_open(&self) -> bool {
        self.state().stage == Stage::Open
    }

    /// Somebody wants to hear.
    pub(crate) fn listen(&self) -> mpsc::Receiver<Hint> {
        let (tell, told) = mpsc::channel(HINTS_MAX);
        self.state().listeners.push(tell);
        told
    }

    pub(crate) fn ring(&self, hint: &Hint) {
        // A listener that is full looks anyway; one that is gone is forgotten.
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
