//! The one writing thread: group commit, control requests first, each transaction bounded in time.
//!
//! ```text
//!  callers ──push──► queue ──take all──► BEGIN ─ run ─ run ─ … ─ COMMIT ──► answer all ──► checkpoint
//!                      ▲                                                        │
//!                      └── the next group gathers while this one commits ◄──────┘
//! ```
//!
//! A request refuses before it writes. One that fails while it writes takes the whole transaction with it.
//! The writer then runs each request again in a transaction of its own, so that only the bad one fails. That
//! has the effect of a SAVEPOINT per request, also where SQLite itself rolls the transaction back (a full
//! disk), and costs the usual path nothing.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode};
use windlass_core::Error;

use crate::{
    connection::{
        call::{Class, Request, Sync, Wait, Waiting},
        checkpoint::Checkpoints,
        disk::Disk,
        error::is_fatal,
        linger::{self, Linger},
        options::Durability,
        reader::closed,
        tx::{Effects, Failure, Step, Touched, Tx},
    },
    gates::{admit, held_line},
    leases::{epoch, hand_back},
    memory::Memory,
    shared::{Ending, Shared},
    sql,
    upkeep::retention::Cursor,
    wakeup::hints,
};

/// A transaction that has run so long is committed with the requests that it has.
const TRANSACTION_MAX: Duration = Duration::from_millis(50);
/// How long the writer waits for the next caller of a group to return. Far less than a commit takes.
const GATHER_QUIET_MAX: Duration = Duration::from_micros(100);

/// The writer and its state.
pub(crate) struct Writer {
    pub conn: Connection,
    pub memory: Memory,
    pub disk: Disk,
    pub checkpoints: Checkpoints,
    pub shared: Arc<Shared>,
    effects: Effects,
    cursor: Cursor,
    backlog: Waiting,
    /// Whether commits are synced now; `None` before it is first set.
    is_synced: Option<bool>,
    /// Whether retention has nothing more to do; then the writer empties the log.
    is_tidy: bool,
    linger: Linger,
}

impl Writer {
    pub(crate) fn new(
        conn: Connection,
        memory: Memory,
        disk: Disk,
        checkpoints: Checkpoints,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            conn,
            memory,
            disk,
            checkpoints,
            shared,
            effects: Effects::default(),
            cursor: Cursor::default(),
            backlog: Waiting::default(),
            is_synced: None,
            is_tidy: false,
            linger: Linger::default(),
        }
    }

    /// Serves requests until the queue is closed or the store fails, then closes the file and releases the
    /// store.
    pub(crate) fn run(mut self) {
        let ending = Ending(Arc::clone(&self.shared));
        let shared = Arc::clone(&self.shared);
        let mut clients_served = 0;
        loop {
            let wait = if self.backlog_is_empty() { Wait::Yes } else { Wait::No };
            if !shared.queue.take_all(&mut self.backlog, wait) {
                break;
            }
            self.gather(clients_served);
            clients_served = self.serve_group();
            if self.has_failed() {
                break;
            }
            self.checkpoint();
        }
        self.fail_backlog();
        if let Some(readers) = &shared.readers {
            readers.close();
        }
        if !self.has_failed() {
            self.checkpoints.last(&self.conn);
        }
        drop(self);
        drop(ending);
    }

    fn backlog_is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Callers that were answered together call again together. Waits the moment that this takes, so that
    /// they form one group again. Only clients are delayed, and an idle store does not wait.
    fn gather(&mut self, expected: usize) {
        if expected < 2 || self.backlog.of_workers() > 0 {
            return;
        }
        let queue = &self.shared.queue;
        let mut here = self.backlog.clients();
        let mut last_growth = Instant::now();
        while here < expected
            && queue.workers_len.load(Ordering::Relaxed) == 0
            && last_growth.elapsed() < GATHER_QUIET_MAX
        {
            std::thread::yield_now();
            let now_here = self.backlog.clients() + queue.clients_len.load(Ordering::Relaxed);
            if now_here > here {
                (here, last_growth) = (now_here, Instant::now());
            }
        }
        queue.take_all(&mut self.backlog, Wait::No);
    }

    /// Runs the waiting requests in one transaction and answers them. Returns how many clients were served.
    fn serve_group(&mut self) -> usize {
        let started = Instant::now();
        let writes = self.backlog.iter().any(|request| match request.sync() {
            Sync::Read => false,
            // Idle workers claim again after every task that ends; without ready tasks that needs no
            // transaction.
            Sync::RelaxedIfReady | Sync::DurableIfReady => self.memory.has_claimable(),
            Sync::Relaxed | Sync::Durable => true,
        });
        let is_durable =
            self.backlog.iter().any(|request| matches!(request.sync(), Sync::Durable | Sync::DurableIfReady));
        let mut group: Vec<Box<dyn Request>> = Vec::new();
        if writes && let Err(error) = self.begin(is_durable) {
            let group = std::iter::from_fn(|| self.backlog.pop()).collect();
            self.fail_all(group, &error);
            return 0;
        }
        while let Some(mut request) = self.next(is_durable, &group) {
            let result = self.run_one(request.as_mut());
            group.push(request);
            if let Err(error) = result {
                self.roll_back();
                return self.serve_alone(group, &error);
            }
            if started.elapsed() >= TRANSACTION_MAX {
                break;
            }
        }
        if writes && let Err(error) = self.commit() {
            self.roll_back();
            return self.serve_alone(group, &error);
        }
        self.follow_up();
        answer(group)
    }

    /// The next request of a transaction. Requests that workers sent while it ran join it if it is synced: a
    /// claim that follows an enqueue shares its commit.
    fn next(&mut self, is_durable: bool, group: &[Box<dyn Request>]) -> Option<Box<dyn Request>> {
        let request = self.backlog.pop();
        if request.is_some() || !is_durable {
            return request;
        }
        self.await_claim(group);
        if self.shared.queue.workers_len.load(Ordering::Relaxed) > 0 {
            self.shared.queue.take_all(&mut self.backlog, Wait::No);
        }
        self.backlog.pop()
    }

    /// Waits a moment for an idle worker to claim the task that one caller has just enqueued.
    fn await_claim(&mut self, group: &[Box<dyn Request>]) {
        let [request] = group else { return };
        let brings = request.class() == Class::Client && self.effects.ready;
        if !brings || self.shared.subscribers.is_empty() || !self.linger.is_worth_it() {
            return;
        }
        let (started, queue) = (Instant::now(), &self.shared.queue);
        let is_here = || queue.workers_len.load(Ordering::Relaxed) > 0;
        while !is_here() && started.elapsed() < linger::MOMENT {
            std::thread::yield_now();
        }
        if is_here() { self.linger.came() } else { self.linger.missed() }
    }

    /// The transaction failed: runs each of its requests in a transaction of its own.
    fn serve_alone(&mut self, group: Vec<Box<dyn Request>>, error: &rusqlite::Error) -> usize {
        if group.len() == 1 || is_fatal(error) {
            self.fail_all(group, error);
            return 0;
        }
        for mut request in group {
            if self.has_failed() {
                request.fail(self.fatal_error());
                continue;
            }
            let result =
                self.begin(true).and_then(|()| self.run_one(request.as_mut())).and_then(|()| self.commit());
            match result {
                Ok(()) => {
                    self.follow_up();
                    request.answer();
                }
                Err(error) => {
                    self.roll_back();
                    self.fail_all(vec![request], &error);
                }
            }
        }
        0
    }

    /// Takes back the tasks of workers that ended with the previous process, and continues the pending turns
    /// of gates.
    pub(crate) fn recover(&mut self) -> rusqlite::Result<u64> {
        let mut workers = self.memory.worker_ids();
        let registered = workers.len();
        let mono = self.shared.options.clock.monotonic();
        workers.retain(|worker| !self.shared.leases.is_live(*worker, mono));
        workers.sort_unstable();
        let moved = self.in_one(|tx| {
            epoch::begin_at_open(tx, registered)?;
            held_line::mend(tx)?;
            admit::find_left_over(tx)?;
            hand_back::take_from_dead(tx, &workers, u32::MAX)
        })?;
        while self.memory.rooms.has_pending() {
            self.in_one(|tx| admit::admit(tx, u32::MAX))?;
        }
        Ok(moved.map_or(0, |report| report.moved))
    }

    /// Runs work in a durable transaction of its own.
    pub(crate) fn in_one<T>(
        &mut self,
        work: impl FnOnce(&mut Tx<'_>) -> Step<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.begin(true)?;
        let answer = match work(&mut self.tx()) {
            Ok(answer) => Some(answer),
            Err(Failure::Broken(error)) => return Err(error),
            Err(Failure::Refused(_)) => None,
        };
        self.commit()?;
        self.follow_up();
        Ok(answer)
    }

    fn run_one(&mut self, request: &mut dyn Request) -> rusqlite::Result<()> {
        request.run(&mut self.tx())
    }

    fn tx(&mut self) -> Tx<'_> {
        let options = &self.shared.options;
        Tx {
            conn: &self.conn,
            memory: &mut self.memory,
            effects: &mut self.effects,
            leases: &self.shared.leases,
            awaited: &self.shared.awaited,
            disk: &mut self.disk,
            cursor: &mut self.cursor,
            touched: Touched::default(),
            options,
            now: options.clock.wall(),
            mono: options.clock.monotonic(),
        }
    }

    fn begin(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        // A transaction of claims, renewals or due tasks alone is not synced. After a power cut it never
        // happened. The worker that it served is gone too, and worker ids are never used again, so no fence
        // is weakened. That halves the time from enqueue to start. The next synced commit covers it, because
        // the log is one file.
        let is_synced = is_durable && self.shared.options.durability == Durability::Full;
        if self.is_synced != Some(is_synced) {
            let level = if is_synced { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            self.conn.execute_batch(level)?;
            self.is_synced = Some(is_synced);
        }
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        if self.effects.figures {
            let history = self.memory.history();
            self.conn.prepare_cached(sql::WRITE_FIGURES)?.execute((
                self.memory.last_id.raw(),
                history.rows as i64,
                history.bytes as i64,
            ))?;
        }
        // Tasks that were claimed in the commit that made them ready need no hint.
        self.effects.ready &= self.memory.ready() > 0;
        hints::publish_early(&self.shared.subscribers, &self.effects);
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        self.checkpoints.committed();
        Ok(())
    }

    fn roll_back(&mut self) {
        // SQLite may have rolled back already (a full disk).
        if !self.conn.is_autocommit() {
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        self.memory.roll_back();
        self.effects.clear();
        self.cursor = Cursor::default();
    }

    /// After a commit: keeps the changes in memory, and notifies waiting callers and subscribers.
    fn follow_up(&mut self) {
        self.memory.commit();
        let (shared, effects) = (&self.shared, &self.effects);
        for (id, worker) in &effects.workers_started {
            shared.leases.start(*id, worker.clone(), shared.options.clock.as_ref());
        }
        for worker in &effects.workers_ended {
            shared.leases.end(*worker);
        }
        for (worker, slots) in &effects.slots_set {
            shared.leases.set_slots(*worker, *slots);
        }
        for (worker, attempt, reason) in &effects.cancels {
            shared.leases.ask_cancel(*worker, *attempt, reason);
        }
        for (worker, attempt) in &effects.cancels_over {
            shared.leases.cancel_over(*worker, *attempt);
        }
        for (job, limit, is_reached) in &effects.limits {
            if *is_reached {
                tracing::info!(%job, limit, "job reached its limit");
            } else {
                tracing::info!(%job, limit, "job left its limit");
            }
        }
        self.is_tidy |= effects.tidy;
        hints::publish_cancels(&shared.subscribers, effects);
        shared.awaited.wake(&effects.ended);
        self.effects.clear();
    }

    fn checkpoint(&mut self) {
        let mut result = self.checkpoints.run(&self.conn);
        if std::mem::take(&mut self.is_tidy) && self.backlog_is_empty() && self.shared.queue.is_empty() {
            result = result.and_then(|()| self.checkpoints.idle(&self.conn));
        }
        if let Err(error) = result
            && is_fatal(&error)
        {
            self.poison(&error);
        }
    }

    fn fail_all(&mut self, group: Vec<Box<dyn Request>>, error: &rusqlite::Error) {
        if is_fatal(error) {
            self.poison(error);
        }
        let is_full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        if is_full {
            self.disk.note_full();
        }
        for request in group {
            let told = match self.has_failed() {
                true => self.fatal_error(),
                false if is_full => Error::StoreFull("its disk has no room left; make room there".to_owned()),
                false => Error::Unavailable(error.to_string()),
            };
            request.fail(told);
        }
    }

    /// The store cannot be used any more: fails every request, now and later.
    fn poison(&mut self, error: &rusqlite::Error) {
        let reason = format!("{error}; check the disk, then start again");
        tracing::error!(reason, "the store failed for good; the process must end");
        self.shared.fatal.send_replace(Some(reason.clone()));
        self.shared.queue.close(Error::Fatal(reason));
    }

    fn has_failed(&self) -> bool {
        self.shared.fatal.borrow().is_some()
    }

    fn fatal_error(&self) -> Error {
        Error::Fatal(self.shared.fatal.borrow().clone().unwrap_or_default())
    }

    fn fail_backlog(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.queue.take_all(&mut self.backlog, Wait::No);
        while let Some(request) = self.backlog.pop() {
            let error = if self.has_failed() { self.fatal_error() } else { closed() };
            request.fail(error);
        }
    }
}

fn answer(group: Vec<Box<dyn Request>>) -> usize {
    let mut clients = 0;
    // Claims ran last; a task starts only when its worker has the answer, so answer them first.
    for request in group.into_iter().rev() {
        clients += usize::from(request.class() == Class::Client);
        request.answer();
    }
    clients
}

#[cfg(test)]
mod tests;
