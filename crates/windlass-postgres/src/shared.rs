//! The state that all parts of an open store share.

use std::{
    sync::{Arc, MutexGuard, Weak},
    time::{Duration, Instant},
};

use tokio::sync::watch;
use windlass_core::{LaneId, Rules, source::hints::Subscribers, usage::EnqueueMeter};

use crate::{
    claim::{
        look::Looks,
        read_position::{ReadPositions, Start},
    },
    connection::{
        conn::Server,
        driver::Driver,
        options::{History, Options},
        pool::Pool,
        sync::Lock,
        values::ms,
    },
    gates::admit::Admission,
    leases::{compare::Comparisons, epoch::LastEpoch, hand_back::Sweeps},
    operate::awaited::Awaited,
    upkeep::{lanes::Lanes, leader::Leadership, vacuum::Vacuum},
    wakeup::{doorbell::Doorbell, offer::Offers},
};

/// An open store, as its parts use it. Each purpose has connections of its own.
pub(crate) struct Shared {
    pub options: Options,
    pub rules: Rules,
    pub server: Arc<Server>,
    /// One for claims.
    pub claims: Pool,
    /// One for settlements.
    pub settles: Pool,
    /// One for renewals, driven on a thread of its own.
    pub renewals: Pool,
    /// One for sweeps, retention and the other duties.
    pub duties: Pool,
    /// One for admission.
    pub gates: Pool,
    /// One for vacuums, open only while they run.
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
    pub epoch: LastEpoch,
    read_positions: Lock<ReadPositions>,
    opened_at: Instant,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        server: &Arc<Server>,
        driver: &Arc<Driver>,
        renewal_driver: &Arc<Driver>,
        listener: i64,
        offers: Offers,
    ) -> Self {
        let claims = Pool::new(server, driver, "claims", 1);
        Self {
            claims: if options.durable_claims { claims } else { claims.soon() },
            settles: Pool::new(server, driver, "settlements", 1),
            renewals: Pool::new(server, renewal_driver, "renewals", 1),
            duties: Pool::new(server, driver, "duties", 1),
            gates: Pool::new(server, driver, "gates", 1),
            cleaning: Pool::new(server, driver, "vacuum", 1),
            pool: Pool::new(server, driver, "clients", options.pool_size.max(1)),
            lanes: Lanes::default(),
            subscribers: Subscribers::default(),
            doorbell: Doorbell::new(listener, options.schema.channel()),
            offers,
            sweeps: Sweeps::new(&options.clock),
            comparisons: Comparisons::default(),
            awaited: Awaited::default(),
            leadership: Leadership::new(&options.clock),
            admission: Arc::default(),
            vacuum: Arc::default(),
            closing: watch::Sender::new(false),
            enqueues: EnqueueMeter::default(),
            looks: Looks::new(Arc::clone(&options.clock)),
            epoch: LastEpoch::default(),
            read_positions: Lock::default(),
            opened_at: (options.clock)(),
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
        ms(self.rules.idempotency_ttl)
    }

    /// The ranges that a claim over these lanes reads.
    pub(crate) fn start(&self, lanes: &[LaneId]) -> Start {
        self.read_positions().start(lanes, self.now())
    }

    /// Where claims read each ready line.
    pub(crate) fn read_positions(&self) -> MutexGuard<'_, ReadPositions> {
        self.read_positions.lock()
    }

    /// The time since the store was opened.
    pub(crate) fn now(&self) -> Duration {
        (self.options.clock)().saturating_duration_since(self.opened_at)
    }

    /// Whether a statement may leave the wait for the disk to a second one on the same connection. Not behind
    /// a pooler: it may send the second one to another server, which never had the writes of the first. Not
    /// where a lease must be on disk before its task starts.
    pub(crate) fn flushes(&self) -> bool {
        !self.options.pooled && !self.options.durable_claims
    }

    /// Tells this process that tasks may be ready.
    pub(crate) fn tell_ready(&self) {
        self.looks.hint();
        self.subscribers.tell_ready();
    }

    /// Refuses every later call.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        self.pools().into_iter().for_each(Pool::close);
    }

    /// How long ago the server was reached again after an outage.
    pub(crate) fn since_outage(&self) -> Option<Duration> {
        self.pools().into_iter().filter_map(Pool::since_outage).min()
    }

    /// The connections of every purpose.
    pub(crate) fn pools(&self) -> [&Pool; 7] {
        [&self.claims, &self.settles, &self.renewals, &self.duties, &self.gates, &self.cleaning, &self.pool]
    }

    /// A worker with this lease time has registered. Statements that its tasks depend on must not wait for a
    /// silent server longer than that. A renewal waits for half of it, so that there is time for a second
    /// one.
    pub(crate) fn serve_lease(&self, lease_ttl: Duration) {
        self.claims.lower_patience(lease_ttl);
        self.settles.lower_patience(lease_ttl);
        self.gates.lower_patience(lease_ttl);
        self.renewals.lower_patience(lease_ttl / 2);
    }

    /// The address of the store, without secrets.
    pub(crate) fn location(&self) -> String {
        self.server.location.to_string()
    }
}

/// A reference to the store that does not keep it open.
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
