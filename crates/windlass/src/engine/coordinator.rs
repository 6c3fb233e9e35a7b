//! The loop of a worker that claims: reserve free slots, claim at most that many tasks, start each at once,
//! return the unused slots.
//!
//! If the store has more tasks and slots are free, the next claim is sent before the tasks of the last one
//! are started, so that the store need not wait for that.
//!
//! A claim that brings no task has one of four outcomes, and each waits for something else: *saturated* for a
//! slot; *nothing there* for a hint, a due time or the poll; *blocked* for the same with the longest poll (no
//! action of this worker can change it); *failed* for a growing delay.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use windlass_core::{
    ClaimAnswer, Claimed, Demand, Error, LaneId, Outcome, Timestamp, WorkerId,
    admission::{self, Gathering},
    source::Rest,
};

use crate::{
    engine::executor,
    handler::{cancel::Cancellation, context::Attempt},
    inside::backoff::Backoff,
    pool::Reserved,
    worker::{
        ClaimBatch,
        lanes::Lanes,
        reach::Again,
        shared::{Phase, Shared},
        status::Counters,
    },
};

/// Most tasks that one duty of the coordinator makes ready before a claim.
const DUE_MAX: u32 = 1_000;
/// The first pause after a failed claim.
const FAILED_PAUSE: Duration = Duration::from_millis(100);
/// The longest such pause.
const FAILED_PAUSE_MAX: Duration = Duration::from_secs(1);

/// What the coordinator waits for before its next claim.
enum Pause {
    /// Nothing: there may be more.
    None,
    /// A slot.
    Saturated,
    /// More free slots, but not longer than this.
    Gathering(Duration),
    /// Fewer unsettled ends: more of them wait for the store than there are slots.
    Unsettled,
    /// A hint, a due time, or the poll.
    Idle,
    /// As `Idle`, with the slowest poll.
    Blocked,
    /// A delay after a failure.
    Failed,
}

/// The tasks of a claim that are about to be started, with their slots.
struct Brought {
    shared: Arc<Shared>,
    attempts: VecDeque<Arc<Attempt>>,
    reserved: Reserved,
}

/// The coordinator died before it started these tasks: hand them back.
impl Drop for Brought {
    fn drop(&mut self) {
        for attempt in self.attempts.drain(..) {
            executor::finish(&self.shared, &attempt, Outcome::Release);
        }
    }
}

pub(crate) struct Coordinator {
    shared: Arc<Shared>,
    lanes: Lanes,
    /// The tasks of the last claim, until the next claim is sent. Never kept across a wait.
    brought: Option<Brought>,
    failures: Backoff,
    /// Ends the pause after a failed claim when the store may be back.
    again: Option<Again>,
    poll: Backoff,
    ended_at_last_claim: u64,
    began: Instant,
    gathering: Gathering,
    /// When the next scheduled task is due, by our clock.
    next_due: Option<Instant>,
    /// A reading of the store's clock and of ours at the same moment.
    store_clock: Option<(Timestamp, Instant)>,
}

impl Coordinator {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (config, seed) = (&shared.config, shared.config.home.seed());
        Self {
            lanes: Lanes::new(&shared.registry),
            brought: None,
            failures: Backoff::new(config.poll_interval.min(FAILED_PAUSE), FAILED_PAUSE_MAX, seed),
            poll: Backoff::new(config.poll_interval, config.poll_interval_max, seed.wrapping_add(1)),
            again: None,
            ended_at_last_claim: 0,
            began: Instant::now(),
            gathering: Gathering::default(),
            next_due: None,
            store_clock: None,
            shared,
        }
    }

    /// Claims until the worker drains.
    pub(crate) async fn run(mut self) {
        self.settle_doubt().await;
        while !self.shared.is_draining() {
            self.shared.tick();
            let shared = self.shared.clone();
            let pause = tokio::select! {
                // Poll the cycle first: `keep_starting` must see the tasks that the cycle has just queued.
                biased;
                pause = self.cycle() => pause,
                never = shared.pool.keep_starting() => match never {},
            };
            self.wait(pause).await;
        }
        self.start_brought();
    }

    /// One round: due duties, then a claim for the free slots.
    async fn cycle(&mut self) -> Pause {
        let Some(worker) = self.shared.worker() else { return Pause::Failed };
        let room = self.room();
        if room == 0 {
            return Pause::Unsettled;
        }
        let (allowed, free) = self.shared.pool.allowance();
        if admission::is_held_back(room, free, allowed, self.shared.pool.size()) {
            self.shared.admission.held_up();
        }
        if let Some(pause) = self.gather(allowed, free) {
            return pause;
        }
        let reserved = self.shared.pool.reserve(room.min(free));
        if reserved.is_empty() {
            return Pause::Saturated;
        }
        // Check again after the reservation: an end is counted before its slot is free.
        if self.has_too_many_ends() {
            return Pause::Unsettled;
        }
        match self.look(worker, reserved).await {
            Ok(pause) => {
                self.failures.reset();
                pause
            }
            Err(error) => self.failed(error).await,
        }
    }

    /// What to wait for if no slot is free, or too few for a claim.
    fn gather(&mut self, allowed: usize, free: usize) -> Option<Pause> {
        let count = |slots: usize| u32::try_from(slots).unwrap_or(u32::MAX);
        match self.gathering.left(count(allowed), count(free), self.began.elapsed()) {
            None if free == 0 => Some(Pause::Saturated),
            left => left.map(Pause::Gathering),
        }
    }

    /// Whether more ended attempts wait for the store than there are slots.
    fn has_too_many_ends(&self) -> bool {
        self.shared.settle_queue.unsettled() > self.shared.pool.size()
    }

    /// How many tasks the next claim may bring, if there are slots for them. None while more ended attempts
    /// wait for the store than there are slots. So a worker holds at most twice as many attempts as it has
    /// slots, however slow the store is (BOUNDED). Up to one attempt per slot may wait, so that all slots can
    /// be refilled while those are settled.
    fn room(&self) -> usize {
        let shared = &self.shared;
        if self.has_too_many_ends() {
            return 0;
        }
        // A claim on a pushing source only says how many tasks may come; the server decides how many to send
        // at once.
        if shared.source.pushes() && !matches!(shared.config.claim_batch, ClaimBatch::AtMost(_)) {
            return shared.pool.size();
        }
        let finished = Counters::get(&shared.counters.ended).saturating_sub(self.ended_at_last_claim);
        shared.config.claim_batch.size(u32::try_from(finished).unwrap_or(u32::MAX)) as usize
    }

    async fn look(&mut self, worker: WorkerId, reserved: Reserved) -> Result<Pause, Error> {
        let source = self.shared.source.clone();
        if self.shared.wake.take_lanes_changed() || self.lanes.is_stale() {
            self.start_brought();
            self.lanes.refresh(&*source, &self.shared).await?;
        }
        if let Some(due) = self.shared.wake.take_due() {
            self.note_due(Some(Timestamp::from_ms(due)));
        }
        if self.next_due.is_some_and(|due| due <= Instant::now()) {
            self.start_brought();
            let report = source.promote_due(DUE_MAX).await?;
            // The due time may belong to a job with a delay.
            let admitted = source.admit(DUE_MAX).await?;
            self.next_due = if report.more || admitted.more { Some(Instant::now()) } else { None };
            self.note_due(report.next_due);
            self.note_due(admitted.next_due);
        }
        let asked = reserved.len();
        let Some(lanes) = self.lanes.for_claim() else { return Ok(Pause::Idle) };
        let asked_at = self.shared.registry.tracer().map(|_| SystemTime::now());
        self.ended_at_last_claim = Counters::get(&self.shared.counters.ended);
        let answer = {
            let mut claim = pin!(claim(self.shared.clone(), worker, lanes, asked as u32));
            let sent = std::future::poll_fn(|cx| Poll::Ready(claim.as_mut().poll(cx))).await;
            self.start_brought();
            match sent {
                Poll::Ready(answer) => answer?,
                Poll::Pending => claim.await?,
            }
        };
        self.reached();
        self.store_clock = Some((answer.now, Instant::now()));
        self.note_due(answer.next_due);
        let pause = self.pause_after(&answer);
        let is_full = answer.tasks.len() >= asked;
        self.take_in(answer, asked_at, reserved);
        if !is_full {
            // Start the tasks at once: the claim was not full, so there may be no next claim to wait for.
            self.start_brought();
        }
        Ok(pause)
    }

    fn pause_after(&mut self, answer: &ClaimAnswer) -> Pause {
        if !answer.tasks.is_empty() {
            self.reset_poll();
            self.lanes.start_round();
        }
        match answer.rest {
            Rest::More => Pause::None,
            // A worker with more lanes than one claim takes must try its other lanes first.
            Rest::Nothing | Rest::Blocked if self.lanes.has_unseen_chunk() => Pause::None,
            Rest::Nothing => Pause::Idle,
            Rest::Blocked => Pause::Blocked,
        }
    }

    /// Records the claimed tasks as ours; the next step starts them.
    fn take_in(&mut self, answer: ClaimAnswer, asked_at: Option<SystemTime>, reserved: Reserved) {
        let shared = &self.shared;
        let attempts: Vec<_> = answer.tasks.into_iter().map(|task| self.attempt(task, asked_at)).collect();
        // A store that crashed may have forgotten a claim. It then gives out the same task under the same
        // lease again; the attempt that already runs keeps it.
        let attempts = shared.in_flight.insert_new(attempts);
        shared.tally.started(&attempts);
        shared.claim_answered();
        self.brought = Some(Brought { shared: shared.clone(), attempts: attempts.into(), reserved });
    }

    /// Starts every claimed task; each already has its slot.
    fn start_brought(&mut self) {
        let Some(mut brought) = self.brought.take() else { return };
        let shared = &self.shared;
        // Check the lease only after the attempts are in `in_flight`. An earlier fence did not cancel them,
        // and the check sees it; a later fence finds them there.
        let worker = shared.worker().filter(|_| !shared.is_draining() && shared.holds_lease());
        while let Some(attempt) = brought.attempts.pop_front() {
            let is_wanted = worker == Some(attempt.claimed.worker);
            let handler = self.lanes.handler(attempt.claimed.lane.id).filter(|_| is_wanted).cloned();
            if is_wanted && handler.is_none() {
                // It is handed back, and may come again: by then its lane must be known.
                self.lanes.mark_stale();
            }
            let started = handler.is_some_and(|handler| {
                brought.reserved.start(executor::execute(shared.clone(), attempt.clone(), handler))
            });
            if !started {
                // A stop or a lost lease came while the claim was running, or the store gave more tasks than
                // there were slots.
                executor::finish(shared, &attempt, Outcome::Release);
            }
        }
    }

    fn attempt(&self, claimed: Claimed, asked_at: Option<SystemTime>) -> Arc<Attempt> {
        let deadline = claimed.timeout.map(|timeout| Instant::now() + timeout);
        let meter = self.lanes.meter(claimed.lane.id);
        if let Some(meters) = &self.shared.meters {
            meters.claimed(&claimed, meter.as_deref());
        }
        let tracer = self.shared.registry.tracer();
        let trace = tracer.zip(asked_at).and_then(|(tracer, asked_at)| tracer.claimed(&claimed, asked_at));
        let source = self.shared.source.clone();
        let attempt = Attempt::new(claimed, deadline, Cancellation::new(), source);
        Arc::new(attempt.metered(meter).traced(trace))
    }

    async fn failed(&mut self, error: Error) -> Pause {
        let shared = &self.shared;
        Counters::add(&shared.counters.claims_failed, 1);
        match error {
            Error::Fatal(_) => shared.set_fatal(error),
            // The heartbeat registers the worker again; until then there is nothing to claim for.
            Error::WorkerExpired => shared.claim_answered(),
            error if shared.is_draining() => tracing::debug!(%error, "a claim failed in the drain"),
            error => self.again = Some(shared.reach.failed("claims", &error)),
        }
        self.settle_doubt().await;
        Pause::Failed
    }

    /// Hands back the tasks of a claim whose answer was lost, before any other claim.
    async fn settle_doubt(&mut self) {
        while let Some((worker, claim_no)) = self.shared.claim_in_doubt() {
            match self.shared.source.unclaim(worker, claim_no).await {
                Ok(_) | Err(Error::WorkerExpired | Error::NotFound(_)) => {
                    self.shared.claim_answered();
                    self.reached();
                }
                Err(error) => {
                    let mut again = self.shared.reach.failed("a claim in doubt", &error);
                    tokio::select! {
                        () = again.after(self.failures.next()) => {}
                        () = self.shared.phase_reached(Phase::HandingBack) => return,
                    }
                }
            }
        }
    }

    /// A claim was answered. On a pushing source that says nothing about the store.
    fn reached(&self) {
        if !self.shared.source.pushes() {
            self.shared.reach.answered();
        }
    }

    /// Records the earliest known due time.
    fn note_due(&mut self, due: Option<Timestamp>) {
        let Some(due) = due else { return };
        let at = match self.store_clock {
            Some((store, ours)) => {
                ours + Duration::from_millis(due.as_ms().saturating_sub(store.as_ms()).max(0) as u64)
            }
            // The first claim brings the store's clock. Before that, and while there is no lane to claim
            // from, due tasks are checked at the slowest poll.
            None => Instant::now() + self.shared.config.poll_interval_max,
        };
        self.next_due = Some(self.next_due.map_or(at, |known| known.min(at)));
    }

    /// Polls often again after a task came, unless hints announce new tasks: then one task costs one claim,
    /// not several.
    fn reset_poll(&mut self) {
        if !self.shared.source.hears_of_new_tasks() {
            self.poll.reset();
        }
    }

    async fn wait(&mut self, pause: Pause) {
        if matches!(pause, Pause::None) && self.brought.is_some() {
            // Send the next claim first; other tasks of this thread run while it waits.
            return;
        }
        self.start_brought();
        let shared = self.shared.clone();
        let slowest = shared.config.poll_interval_max;
        let timer = match pause {
            // Yield, so that a claim loop over very short tasks cannot starve the other tasks of this thread.
            Pause::None => return tokio::task::yield_now().await,
            Pause::Saturated | Pause::Unsettled | Pause::Blocked => self.poll.spread(slowest.mul_f64(0.8)),
            Pause::Idle if shared.source.hears_of_new_tasks() => self.poll.next().min(slowest),
            // There are no hints: only the poll finds new tasks.
            Pause::Idle => self.poll.spread(shared.config.poll_interval),
            Pause::Failed => self.failures.next(),
            Pause::Gathering(left) => left,
        };
        let until_due = self.next_due.map_or(timer, |due| due.saturating_duration_since(Instant::now()));
        let wakes = matches!(pause, Pause::Idle | Pause::Blocked);
        let has_failed = matches!(pause, Pause::Failed);
        let mut again = self.again.take().filter(|_| has_failed);
        // A hint ends the pause after a failed claim, but not before the shortest pause. Otherwise many hints
        // would cause a flood of failing claims.
        let woken = async {
            if has_failed {
                tokio::time::sleep(FAILED_PAUSE).await;
            }
            shared.wake.woken().await;
        };
        let reached = async {
            match &mut again {
                Some(again) => again.wanted().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.phase_reached(Phase::Draining) => {}
            never = shared.pool.keep_starting() => match never {},
            () = shared.pool.freed(), if matches!(pause, Pause::Saturated | Pause::Gathering(_)) => {}
            () = shared.settle_queue.shrunk(), if matches!(pause, Pause::Unsettled) => {}
            () = woken, if wakes || has_failed => self.reset_poll(),
            () = reached => {}
            () = tokio::time::sleep(if wakes { timer.min(until_due) } else { timer }) => {
                if !matches!(pause, Pause::Gathering(_)) {
                    self.lanes.mark_stale();
                }
            }
        }
    }
}

async fn claim(
    shared: Arc<Shared>,
    worker: WorkerId,
    lanes: Arc<[LaneId]>,
    n: u32,
) -> Result<ClaimAnswer, Error> {
    let claim_no = shared.next_claim(worker);
    Counters::add(&shared.counters.claims, 1);
    let demand = [Demand { waits: true, ..Demand::new(worker, claim_no, lanes, n) }];
    let asked_at = Instant::now();
    let answer = tokio::select! {
        answer = shared.source.claim(&demand) => {
            let took = asked_at.elapsed();
            shared.claim_times.note(took);
            if let Some(meters) = &shared.meters {
                meters.claim(took, answer.as_ref().map(|answer| answer.tasks.len()).ok());
            }
            answer?
        }
        // A claim that hangs must not hang the stop; `unclaim` hands back the tasks that it may have taken.
        () = shared.phase_reached(Phase::HandingBack) => {
            return Err(Error::Unknown("the worker is stopping".into()));
        }
    };
    Counters::add(&shared.counters.claimed, answer.tasks.len() as u64);
    if answer.tasks.is_empty() {
        Counters::add(&shared.counters.claims_empty, 1);
    }
    Ok(answer)
}
