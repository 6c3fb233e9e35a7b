//! Offers: an idle worker takes the next task that is enqueued alone. The commit that adds the task also
//! leases it, so there is no claim.
//!
//! ```text
//!   a claim took nothing ──► laid out ──► taken by an enqueue elsewhere ──► notified ──► next claim
//!                               │               │ notification lost          │ no claim within 250 ms
//!                               ▼               ▼                            ▼
//!                           withdrawn       withdrawn, and the leases under its number are handed back
//! ```
//!
//! The number of an offer is that of a claim that took nothing, so every lease under it came by the offer. A
//! task must be started or handed back, and never both. So this process first forgets the offer, and only
//! then hands back at the server: a notification that arrives later is ignored.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::crypto::ring::default_provider;
use tokio::sync::mpsc;
use tokio_postgres::{
    Client,
    types::{ToSql, Type},
};
use windlass_core::{Claimed, Demand, LaneId, LeaseRef, Payload, Result, TaskId, Timestamp, WorkerId};

use crate::{
    connection::sync::Lock,
    leases::hand_back,
    operate::record,
    shared::{Shared, Weakly},
    sql,
    wakeup::doorbell::{disarm, numbers},
};

/// Payloads up to this size are sent in the notification, which has room for 8,000 characters.
pub(crate) const TOLD_MAX_BYTES: usize = 3_000;
/// After how long a worker whose offer was taken makes another: the task starts first.
const AGAIN_AFTER: Duration = Duration::from_millis(1);
/// How long a task that the server notified of waits for its worker to claim.
const HELD_FOR: Duration = Duration::from_millis(250);
/// How long the notification of an offer may take after a renewal saw that the offer is no longer in the
/// database.
const NOTIFIED_WITHIN: Duration = Duration::from_millis(500);
/// How long this process remembers a lease that a claim with a higher number has brought: longer than a
/// comparison of leases may take.
pub(crate) const BROUGHT_FOR: Duration = Duration::from_secs(30);
/// Pauses between attempts to hand a lease back.
const RETRY_MIN: Duration = Duration::from_millis(50);
/// The longest of these pauses.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// What this process offers.
pub(crate) struct Offers {
    state: Lock<State>,
    chores: mpsc::UnboundedSender<Chore>,
}

/// The private channel on which the server notifies this process of the tasks that it leased by an offer, and
/// the number of the advisory lock that shows the server that this process is connected.
#[derive(Debug, Clone)]
pub(crate) struct PrivateChannel {
    pub name: String,
    pub presence: i64,
}

impl PrivateChannel {
    /// A channel with a name that cannot be guessed; `None` without a source of randomness.
    pub(crate) fn new() -> Option<Self> {
        let mut secret = [0_u8; 24];
        default_provider().secure_random.fill(&mut secret).ok()?;
        let (name, lock) = secret.split_at(16);
        let mut channel = "windlass_".to_owned();
        for byte in name {
            let _ = write!(channel, "{byte:02x}");
        }
        let presence = lock.iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
        Some(Self { name: channel, presence })
    }

    /// Subscribes over this connection. The name is in no statement: more people can read statements than can
    /// read the tables.
    pub(crate) async fn open(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let name: (&(dyn ToSql + Sync), Type) = (&self.name, Type::TEXT);
        let params = [name, (&self.presence, Type::INT8)];
        client
            .query_typed(
                "SELECT set_config('windlass.private_channel', $1, false), pg_advisory_lock($2)",
                &params,
            )
            .await?;
        client
            .batch_execute(
                "DO $$ BEGIN EXECUTE format('LISTEN %I', current_setting('windlass.private_channel')); END $$;
                 RESET windlass.private_channel",
            )
            .await
    }
}

/// Identifies an offer: its worker and its claim number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    worker: WorkerId,
    claim_no: u64,
}

#[derive(Default)]
struct State {
    private: Option<PrivateChannel>,
    out: Option<Out>,
    /// The server notified of a task a moment ago; the next offer waits until that task has started.
    is_resting: bool,
    next: Option<(Key, Vec<i32>)>,
    arrived: Vec<Claimed>,
    brought: VecDeque<Brought>,
}

/// A lease that a claim has brought to its worker.
struct Brought {
    lease: LeaseRef,
    key: Key,
    by_claim_no: u64,
    at: Instant,
}

/// An offer that is laid out, as far as this process has been notified.
struct Out {
    key: Key,
    /// When a renewal saw that the offer is no longer in the database.
    missed_at: Option<Instant>,
}

impl Out {
    fn is_missed(&self) -> bool {
        self.missed_at.is_some_and(|at| at.elapsed() > NOTIFIED_WITHIN)
    }
}

/// Work at the server, done one after the other.
enum Chore {
    Lay(Key, Vec<i32>, PrivateChannel),
    Undo(Key),
    Disarm(Vec<LaneId>),
}

impl State {
    /// Whether this process has, or had, the task that was leased under this number.
    fn knows(&self, key: Key) -> bool {
        self.arrived.iter().any(|task| key_of(task) == key)
            || self.brought.iter().any(|brought| brought.key == key)
    }
}

fn key_of(task: &Claimed) -> Key {
    Key { worker: task.worker, claim_no: task.claim_no }
}

impl Offers {
    /// [`run`] does its chores.
    pub(crate) fn new() -> (Self, Chores) {
        let (chores, todo) = mpsc::unbounded_channel();
        (Self { state: Lock::default(), chores }, Chores(todo))
    }

    /// Sets the channel that this process is subscribed to from now on, or none. The offer that is out may
    /// have been taken without a notification, so it is undone.
    pub(crate) fn listens(&self, private: Option<PrivateChannel>) {
        let mut state = self.state.lock();
        state.private = private;
        self.undo(state.out.take().map(|out| out.key));
    }

    /// Offers to take a task for a worker whose claim took nothing; one offer at a time.
    pub(crate) fn lay(&self, demand: &Demand) {
        let mut state = self.state.lock();
        let key = Key { worker: demand.worker, claim_no: demand.claim_no };
        state.next = Some((key, numbers(&demand.lanes)));
        self.undo(state.out.take_if(|out| out.is_missed()).map(|out| out.key));
        if !state.is_resting {
            self.lay_next(&mut state);
        }
    }

    /// The task of the last notification has had the time to start.
    fn rested(&self) {
        let mut state = self.state.lock();
        state.is_resting = false;
        self.lay_next(&mut state);
    }

    fn lay_next(&self, state: &mut State) {
        if let Some((key, lanes)) = state.next.take()
            && let Some(private) = state.private.clone()
            && state.out.is_none()
            && state.arrived.is_empty()
        {
            state.out = Some(Out { key, missed_at: None });
            let _ = self.chores.send(Chore::Lay(key, lanes, private));
        }
    }

    /// Makes no offer until a worker is idle again.
    pub(crate) fn withdraw(&self) {
        let mut state = self.state.lock();
        state.next = None;
        let out = state.out.take();
        self.undo(out.map(|out| out.key));
    }

    /// Undoes the offers of a worker's claims up to this number.
    pub(crate) fn forget(&self, worker: WorkerId, up_to_claim_no: u64) {
        let is_meant = |key: Key| key.worker == worker && key.claim_no <= up_to_claim_no;
        let mut state = self.state.lock();
        state.next.take_if(|(key, _)| is_meant(*key));
        let out = state.out.take_if(|out| is_meant(out.key)).map(|out| out.key);
        let mut keys: Vec<Key> = out.into_iter().collect();
        keys.extend(state.arrived.extract_if(.., |task| is_meant(key_of(task))).map(|task| key_of(&task)));
        // What that claim brought did not reach the worker.
        let did_not_arrive =
            |brought: &Brought| brought.key.worker == worker && brought.by_claim_no == up_to_claim_no;
        keys.extend(
            state.brought.iter().filter(|brought| did_not_arrive(brought)).map(|brought| brought.key),
        );
        state.brought.retain(|brought| !did_not_arrive(brought));
        self.undo(keys);
    }

    /// A renewal saw which offer of this process is in the database.
    pub(crate) fn renewed(&self, claim_no: Option<u64>) {
        let mut state = self.state.lock();
        if let Some(out) = &mut state.out {
            let missed_at = *out.missed_at.get_or_insert_with(Instant::now);
            out.missed_at = (Some(out.key.claim_no) != claim_no).then_some(missed_at);
        }
        self.undo(state.out.take_if(|out| out.is_missed()).map(|out| out.key));
    }

    /// Takes the notification of a task that was leased by an offer. Answers whether the offer was still out;
    /// if it was not, the task is handed back.
    fn arrives(&self, task: Claimed) -> bool {
        let mut state = self.state.lock();
        let key = key_of(&task);
        let is_out = state.out.take_if(|out| out.key == key).is_some();
        if is_out {
            state.arrived.push(task);
            state.is_resting = true;
        } else if !state.knows(key) {
            self.undo(Some(key));
        }
        is_out
    }

    /// The tasks that offers brought for this demand.
    pub(crate) fn bring(&self, demand: &Demand) -> Vec<Claimed> {
        let mut state = self.state.lock();
        if state.arrived.is_empty() {
            return Vec::new();
        }
        let is_meant =
            |task: &mut Claimed| task.worker == demand.worker && demand.lanes.contains(&task.lane.id);
        let tasks: Vec<_> = state.arrived.extract_if(.., is_meant).take(demand.n as usize).collect();
        let now = Instant::now();
        while state.brought.front().is_some_and(|brought| now.duration_since(brought.at) > BROUGHT_FOR) {
            state.brought.pop_front();
        }
        state.brought.extend(tasks.iter().map(|task| Brought {
            lease: LeaseRef { id: task.id, lease: task.lease },
            key: key_of(task),
            by_claim_no: demand.claim_no,
            at: now,
        }));
        tasks
    }

    /// Whether a lease is on its way to its worker, or reached the worker by a claim with a higher number.
    pub(crate) fn covers(&self, worker: WorkerId, lease: LeaseRef, claim_no: u64) -> bool {
        let key = Key { worker, claim_no };
        let state = self.state.lock();
        state.out.as_ref().is_some_and(|out| out.key == key)
            || state.arrived.iter().any(|task| key_of(task) == key)
            || state.brought.iter().any(|brought| brought.lease == lease)
    }

    /// The lowest number of a worker under which an offer of this process may still lease a task.
    pub(crate) fn oldest(&self, worker: WorkerId) -> Option<u64> {
        let state = self.state.lock();
        let out = state.out.iter().map(|out| out.key);
        let next = state.next.iter().map(|(key, _)| *key);
        let arrived = state.arrived.iter().map(key_of);
        out.chain(next).chain(arrived).filter(|key| key.worker == worker).map(|key| key.claim_no).min()
    }

    /// Undoes an offer: no claim took what it leased, or it is unknown whether it was laid out.
    fn give_up(&self, key: Key) {
        let mut state = self.state.lock();
        let out = state.out.take_if(|out| out.key == key);
        let held = state.arrived.extract_if(.., |task| key_of(task) == key).count();
        self.undo((out.is_some() || held > 0).then_some(key));
    }

    /// Has the doorbell of a full worker disarmed.
    pub(crate) fn disarm(&self, lanes: Vec<LaneId>) {
        let _ = self.chores.send(Chore::Disarm(lanes));
    }

    fn undo(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            let _ = self.chores.send(Chore::Undo(key));
        }
    }
}

/// Reads the notification of a task that an offer took: worker, claim number, id, lane, priority, most
/// attempts, encoding, time, payload.
fn read(shared: &Shared, text: &str) -> Option<Claimed> {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (worker, claim_no, id) = (number()?, number()?, number()?);
    let (lane, priority, max_attempts) = (number()?, number()?, number()?);
    let (encoding, now) = (number()?, number()?);
    let payload = unhex(words.next().unwrap_or_default())?;
    Some(Claimed {
        id: TaskId::from_raw(id),
        lease: 1,
        attempt: 1,
        max_attempts: u32::try_from(max_attempts).ok()?,
        crashes: 0,
        worker: WorkerId(worker),
        claim_no: u64::try_from(claim_no).ok()?,
        lane: shared.lanes.get(i32::try_from(lane).ok()?)?,
        priority: i32::try_from(priority).ok()?,
        payload: Payload::from_stored(record::encoding(i16::try_from(encoding).ok()?), payload),
        job: None,
        workflow: None,
        timeout: None,
        retry: None,
        trace: None,
        claimed_at: Timestamp::from_ms(now),
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Takes the notification of a task. If no claim takes the task, it is handed back.
pub(crate) fn arrived(shared: &Arc<Shared>, text: &str) {
    // A notification that cannot be read is lost: the next renewal misses the offer and hands the task back.
    let Some(task) = read(shared, text) else { return };
    let key = key_of(&task);
    if !shared.offers.arrives(task) {
        return;
    }
    shared.subscribers.tell_ready();
    let shared = Weakly::new(shared);
    tokio::spawn(async move {
        tokio::time::sleep(AGAIN_AFTER).await;
        let Some(offers) = shared.upgrade() else { return };
        offers.offers.rested();
        drop(offers);
        tokio::time::sleep(HELD_FOR).await;
        if let Some(shared) = shared.upgrade() {
            shared.offers.give_up(key);
        }
    });
}

/// The work for [`run`].
pub(crate) struct Chores(mpsc::UnboundedReceiver<Chore>);

/// Lays offers out and undoes them until the store is closed.
pub(crate) async fn run(mut chores: Chores, shared: Weakly) {
    loop {
        let chore = tokio::select! {
            chore = chores.0.recv() => chore,
            () = shared.closed() => return,
        };
        let (Some(chore), Some(shared)) = (chore, shared.upgrade()) else { return };
        match chore {
            Chore::Lay(key, lanes, private) => match lay(&shared, key, &lanes, &private).await {
                Ok(true) => {}
                // After an error it is unknown whether the offer is in the database.
                Ok(false) | Err(_) => shared.offers.give_up(key),
            },
            Chore::Undo(key) => undo(&shared, key).await,
            Chore::Disarm(lanes) => disarm(&shared, &lanes).await,
        }
    }
}

/// Lays an offer out; `false` if that was refused.
async fn lay(shared: &Shared, key: Key, lanes: &[i32], private: &PrivateChannel) -> Result<bool> {
    let (listener, claim_no) = (shared.doorbell.listener, key.claim_no as i64);
    let laid = shared
        .claims
        .row(
            &sql::OFFER_LAY,
            &[&listener, &key.worker.0, &claim_no, &lanes, &private.name, &private.presence],
        )
        .await?;
    Ok(laid.is_some())
}

/// Withdraws an offer. If an enqueue took it before, its lease is handed back. Tries again until that is
/// done.
async fn undo(shared: &Shared, key: Key) {
    let mut pause = RETRY_MIN;
    while let Err(error) = try_to_undo(shared, key).await {
        if *shared.closing.borrow() {
            return;
        }
        tracing::debug!(%error, again_in = ?pause, "an offer could not be undone yet");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}

async fn try_to_undo(shared: &Shared, key: Key) -> Result<()> {
    let (listener, claim_no) = (shared.doorbell.listener, key.claim_no as i64);
    let withdrawn = shared.duties.row(&sql::OFFER_WITHDRAW, &[&listener, &claim_no]).await?;
    if withdrawn.is_none() {
        let n = hand_back::hand_back_claim(shared, key.worker, key.claim_no).await?;
        if n > 0 {
            tracing::warn!(worker = %key.worker, tasks = n, "handed back a task that was leased to an idle worker and did not start");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_number_of_a_worker_is_one_still_out() {
        let (offers, _chores) = Offers::new();
        offers.listens(PrivateChannel::new());
        offers.lay(&Demand::new(WorkerId(1), 5, Arc::from([LaneId(1)]), 1));
        offers.lay(&Demand::new(WorkerId(1), 7, Arc::from([LaneId(1)]), 1));
        assert_eq!((offers.oldest(WorkerId(1)), offers.oldest(WorkerId(2))), (Some(5), None));
        offers.withdraw();
        assert_eq!(offers.oldest(WorkerId(1)), None);
    }
}
