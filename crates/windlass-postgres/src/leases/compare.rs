//! The comparison of leases, both ways: what the store gives a worker, and what the worker has.
//!
//! A snapshot that a session holds keeps the entries of ended tasks in the index of running ones. A read of
//! all leases of a worker passes over each of them. So most comparisons read two small things instead:
//!
//! ```text
//!   claim numbers   1 ……………… last comparison ……………… answered by now
//!                   └─ leases of then, by their ids ─┘└─ this range of the index ─┘
//! ```
//! Nothing else can have changed: a claim that has been answered adds no lease later. An offer does, under
//! the number of an older claim, so the range begins below an offer that is still out. The whole index is
//! read at the first comparison, in another epoch of leases, and once a minute in case another process
//! changed a lease without this process being told.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Row;
use windlass_core::{Error, LeaseRef, Result, WorkerId, epoch::Epoch, source::Reconciled};

use crate::{
    connection::{pool::Session, repeat::repeat, sync::Lock},
    leases::hand_back::{self, HAND_BACK_MAX, claim_of, held_lease, lease_of},
    settle::HeldLease,
    shared::Shared,
    sql,
    wakeup::offer::BROUGHT_FOR,
};

/// How long the server reads leases for one comparison.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How often the whole index is read.
const WHOLE_EVERY: Duration = Duration::from_mins(1);
/// Workers of which the last comparison is remembered; with more of them all are forgotten, and the next
/// comparison of each reads the whole index.
const WORKERS_MAX: usize = 10_000;

/// What the last comparison of each worker found.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(Lock<HashMap<WorkerId, Found>>);

/// What a comparison found.
#[derive(Debug, Clone)]
struct Found {
    epoch: Epoch,
    /// Each lease of a claim up to this number is among `leases`, or has ended.
    up_to: i64,
    leases: Arc<HashSet<LeaseRef>>,
    whole_at: Instant,
}

impl Comparisons {
    fn find(&self, worker: WorkerId, epoch: Epoch) -> Option<Found> {
        self.0.lock().get(&worker).filter(|found| found.epoch == epoch).cloned()
    }

    fn note(&self, worker: WorkerId, found: Found) {
        let mut all = self.0.lock();
        if all.len() >= WORKERS_MAX && !all.contains_key(&worker) {
            all.clear();
        }
        all.insert(worker, found);
    }

    /// A claim begins. A late one, with a number that a comparison has passed, may add leases below that
    /// number: the next comparison reads from there.
    pub(crate) fn claims(&self, worker: WorkerId, claim_no: u64) {
        if let Some(found) = self.0.lock().get_mut(&worker) {
            found.up_to = found.up_to.min(claim_no as i64 - 1);
        }
    }

    /// Forgets a worker whose registration has ended.
    pub(crate) fn forget(&self, worker: WorkerId) {
        self.0.lock().remove(&worker);
    }
}

fn too_slow() -> Error {
    Error::Unavailable(format!("the leases of a worker could not be read within {TIME_MAX:?}"))
}

/// Hands back what the worker holds and does not name; answers what it names and does not hold.
pub(crate) async fn reconcile(
    shared: &Shared,
    worker: WorkerId,
    up_to_claim_no: u64,
    in_flight: &[LeaseRef],
) -> Result<Reconciled> {
    let began = Instant::now();
    let named: HashSet<LeaseRef> = in_flight.iter().copied().collect();
    let up_to = i64::try_from(up_to_claim_no).unwrap_or(i64::MAX);
    let epoch = shared.epoch.get();
    let known = shared.comparisons.find(worker, epoch);
    // Asked before the read: the next comparison finds what an offer leases during the read.
    let offer = shared.offers.oldest(worker);
    // Not on the connection of renewals: how long this takes may depend on dead rows, and a renewal must not
    // wait for that.
    let mut session = shared.duties.session().await?;
    let look = Look::take(&mut session, worker, known.as_ref(), up_to, &named).await?;
    drop(session);
    let held: HashSet<LeaseRef> = look.rows.iter().map(lease_of).collect();
    let mut lost: Vec<LeaseRef> = named.difference(&held).copied().collect();
    lost.sort_unstable();
    let is_stray = |row: &&Row| {
        let (lease, claim_no) = (lease_of(row), claim_of(row));
        // An offer's lease is remembered for this long: after that nothing is handed back.
        claim_no <= up_to as u64
            && !named.contains(&lease)
            && !shared.offers.covers(worker, lease, claim_no)
            && began.elapsed() < BROUGHT_FOR
    };
    let strays = || {
        let mut strays: Vec<HeldLease> = look.rows.iter().filter(is_stray).map(held_lease).collect();
        // They return to their ready lines in the order in which they were leased.
        strays.sort_unstable_by_key(|stray| stray.lease);
        strays
    };
    // Usually there is none, and nothing is locked.
    let handed_back = if strays().is_empty() { 0 } else { hand_back(shared, worker, strays).await? };
    match look.whole_at {
        // A number without a bound says nothing of the claims that come next.
        Some(whole_at) if up_to < i64::MAX => {
            let up_to = up_to.max(known.map_or(0, |known| known.up_to));
            let up_to = offer.map_or(up_to, |offer| up_to.min(offer as i64 - 1));
            shared.comparisons.note(worker, Found { epoch, up_to, leases: Arc::new(held), whole_at });
        }
        // What was not read may hold leases that the worker lacks, so this is no answer, unless there is
        // something to tell.
        None if lost.is_empty() && handed_back == 0 => return Err(too_slow()),
        Some(_) | None => {}
    }
    Ok(Reconciled { handed_back, lost })
}

/// What was read for a comparison.
struct Look {
    /// Leases that the worker has.
    rows: Vec<Row>,
    /// When the whole index was read last; `None` if leases may be missing in `rows`.
    whole_at: Option<Instant>,
}

impl Look {
    async fn take(
        session: &mut Session<'_>,
        worker: WorkerId,
        known: Option<&Found>,
        up_to: i64,
        named: &HashSet<LeaseRef>,
    ) -> Result<Self> {
        let began = Instant::now();
        let limit = named.len() + HAND_BACK_MAX;
        let mut rows = None;
        if known.is_none_or(|known| known.whole_at.elapsed() >= WHOLE_EVERY) {
            rows = read(session, worker, (0, up_to), limit).await?;
        }
        let mut whole_at = rows.is_some().then_some(began);
        if let (None, Some(known)) = (&rows, known) {
            rows = read(session, worker, (known.up_to.saturating_add(1), up_to), limit).await?;
            // A read of the whole that took too long is not tried again at once.
            let is_tried = known.whole_at.elapsed() >= WHOLE_EVERY;
            whole_at = rows.is_some().then_some(if is_tried { began } else { known.whole_at });
        }
        let mut rows = rows.unwrap_or_default();
        if rows.len() >= limit {
            whole_at = None;
        }
        let seen: HashSet<LeaseRef> = rows.iter().map(lease_of).collect();
        let earlier = known.iter().flat_map(|known| known.leases.iter());
        let others: HashSet<LeaseRef> =
            named.iter().chain(earlier).filter(|lease| !seen.contains(lease)).copied().collect();
        if !others.is_empty() {
            let (ids, numbers): (Vec<i64>, Vec<i32>) =
                others.iter().map(|lease| (lease.id.raw(), lease.lease as i32)).unzip();
            rows.extend(session.query(&sql::HELD_NAMED, &[&worker.0, &ids, &numbers]).await?);
        }
        Ok(Self { rows, whole_at })
    }
}

/// The leases of a range of claims; nothing if that took too long.
async fn read(
    session: &mut Session<'_>,
    worker: WorkerId,
    claims: (i64, i64),
    limit: usize,
) -> Result<Option<Vec<Row>>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(session.query_within(TIME_MAX, &sql::HELD, &[&worker.0, &claims.0, &claims.1, &limit]).await?)
}

/// Hands back leases that were read, under the worker's lock. Nothing is read under it whose time depends on
/// dead rows: renewals wait for that lock.
async fn hand_back(shared: &Shared, worker: WorkerId, strays: impl Fn() -> Vec<HeldLease>) -> Result<u64> {
    repeat(|| async {
        let Some(session) = hand_back::lock_worker(&shared.duties, worker).await? else { return Ok(0) };
        hand_back::hand_back(shared, session, worker, &strays()).await
    })
    .await
}
