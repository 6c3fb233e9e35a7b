//! What all parts of an open store have in common.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::watch;
use windlass_core::{LaneId, Rules, usage::EnqueueMeter};

use crate::{
    awaited::Awaited,
    compare::Comparisons,
    conn::Server,
    cursor::{Cursors, Stretches},
    doorbell::Doorbell,
    driver::Driver,
    epoch::Known,
    gate::Admission,
    hints::Subscribers,
    lanes::Lanes,
    leader::Leadership,
    lease::Sweeps,
    looks::Looks,
    offer::Offers,
    options::{History, Options},
    place::Places,
    pool::Pool,
    vacuum::Vacuum,
};

/// An open store, as its parts see it. Each purpose has connections of its own.
pub(crate) struct Shared {
    pub options: Options,
    pub rules: Rules,
    pub server: Arc<Server>,
    /// One for claims.
    pub claims: Pool,
    /// One for settlements.
    pub settles: Pool,
    /// One for renewals, driven on a thread of its own.
    pub beats: Pool,
    /// One for sweeps, retention and the other duties.
    pub duties: Pool,
    /// One for admission.
    pub gates: Pool,
    /// One for cleaning up, open only while that goes on.
    pub cleaning: Pool,
    /// A few for everything else.
    pub pool: Pool,
    pub lanes: Lanes,
    pub subscribers: Subscribers,
    pub doorbell: Doorbell,
    pub offers: Offers,
    pub sweeps: Sweeps,
    pub comparisons: Comparisons,
    pub awaited: Awaited,
    pub leadership: Leadership,
    pub admission: Arc<Admission>,
    pub vacuum: Arc<Vacuum>,
    pub closing: watch::Sender<bool>,
    pub enqueues: EnqueueMeter,
    pub looks: Looks,
    pub places: Places,
    pub epoch: Known,
    cursors: Mutex<Cursors>,
    opened_at: Instant,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        server: &Arc<Server>,
        driver: &Arc<Driver>,
        beat: &Arc<Driver>,
        listener: i64,
        offers: Offers,
    ) -> Self {
        let claims = Pool::new(server, driver, "claims", 1);
        Self {
            claims: if options.durable_claims { claims } else { claims.soon() },
            settles: Pool::new(server, driver, "settlements", 1),
            beats: Pool::new(server, beat, "renewals", 1),
            duties: Pool::new(server, driver, "duties", 1),
            gates: Pool::new(server, driver, "gates", 1),
            cleaning: Pool::new(server, driver, "vacuum", 1),
            pool: Pool::new(server, driver, "clients", options.pool_size.max(1)),
            lanes: Lanes::default(),
            subscribers: Subscribers::default(),
            doorbell: Doorbell::new(listener, options.schema.channel()),
            offers,
            sweeps: Sweeps::default(),
            comparisons: Comparisons::default(),
            awaited: Awaited::default(),
            leadership: Leadership::default(),
            admission: Arc::default(),
            vacuum: Arc::default(),
            closing: watch::Sender::new(false),
            enqueues: EnqueueMeter::default(),
            looks: Looks::new(options.trusts_hearsay),
            places: Places::default(),
            epoch: Known::default(),
            cursors: Mutex::default(),
            opened_at: Instant::now(),
            rules: options.rules.clone(),
            server: Arc::clone(server),
            options,
        }
    }

    /// Whether every ended task is kept.
    pub(crate) fn keeps_all(&self) -> bool {
        self.options.history == History::Kept
    }

    /// How long a key is remembered after its task ended.
    pub(crate) fn key_ttl_ms(&self) -> i64 {
        i64::try_from(self.rules.idempotency_ttl.as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// Where a claim over these lanes starts.
    pub(crate) fn stretches(&self, lanes: &[LaneId]) -> Stretches {
        self.cursors().stretches(lanes, self.opened_at.elapsed())
    }

    /// What a claim took, as (lane, priority, place), and whether it got less than it asked for.
    pub(crate) fn note_taken(
        &self,
        lanes: &[LaneId],
        taken: impl Iterator<Item = (i32, i32, i64)>,
        was_short: bool,
    ) {
        let now = self.opened_at.elapsed();
        let mut cursors = self.cursors();
        let mut last = None;
        for (lane, priority, place) in taken {
            // In the order of the line, so the last of a stretch is the furthest.
            if let Some((known_lane, known_priority, known)) = last
                && (known_lane, known_priority) != (lane, priority)
            {
                cursors.took(known_lane, known_priority, known, now);
            }
            last = Some((lane, priority, place));
        }
        if let Some((lane, priority, place)) = last {
            cursors.took(lane, priority, place, now);
        }
        cursors.ended(lanes, was_short);
    }

    /// Whether a statement may leave the wait for the disk to one that follows it on the same connection: behind a pooler that may be
    /// another server's, which never had what the first one wrote. Nor where a lease must be safe before its task starts.
    pub(crate) fn flushes(&self) -> bool {
        !self.options.pooled && !self.options.durable_claims
    }

    /// Tells this process that tasks may be ready.
    pub(crate) fn tell_ready(&self) {
        self.tell_of(None);
    }

    /// The same where all that is known to have come is one task, if its id was said.
    pub(crate) fn tell_of(&self, task: Option<i64>) {
        self.looks.expect(task);
        self.subscribers.tell_ready();
    }

    /// Refuses every later call.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        self.pools().into_iter().for_each(Pool::close);
    }

    /// How long ago the server was found again after an outage.
    pub(crate) fn since_outage(&self) -> Option<Duration> {
        self.pools().into_iter().filter_map(Pool::since_outage).min()
    }

    /// The connections of every purpose.
    pub(crate) fn pools(&self) -> [&Pool; 7] {
        [&self.claims, &self.settles, &self.beats, &self.duties, &self.gates, &self.cleaning, &self.pool]
    }

    /// A worker with this lease time is here: what keeps its tasks going must not wait for a silent server longer than
    /// that, and a renewal has a second chance within it.
    pub(crate) fn serve_lease(&self, lease_ttl: Duration) {
        self.claims.lower_patience(lease_ttl);
        self.settles.lower_patience(lease_ttl);
        self.gates.lower_patience(lease_ttl);
        self.beats.lower_patience(lease_ttl / 2);
    }

    /// The next claim starts at the heads of the lines.
    pub(crate) fn forget_cursors(&self) {
        self.cursors().forget();
    }

    /// Where the store is, without secrets.
    pub(crate) fn location(&self) -> String {
        self.server.location().to_string()
    }

    fn cursors(&self) -> std::sync::MutexGuard<'_, Cursors> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hold on the store that does not keep it open.
#[derive(Clone)]
pub(crate) struct Weakly {
    shared: Weak<Shared>,
    closing: watch::Receiver<bool>,
}

impl Weakly {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), closing: shared.closing.subscribe() }
    }

    pub(crate) fn upgrade(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade().filter(|_| !*self.closing.borrow())
    }

    /// Resolves when the store is closed or dropped.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }
}
