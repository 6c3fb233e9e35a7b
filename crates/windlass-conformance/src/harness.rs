//! What the suite needs in order to test a store: how to open one, and how to move its clock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use windlass_core::{Clock, LeaseRef, Rules, Store, Timestamp, time::ManualClock};

use crate::{fault::Fault, memory::MemoryStore, model::Model};

/// Where every manual clock of the suite starts.
pub const START: Timestamp = Timestamp::from_ms(1_763_000_000_000);

/// A kind of store under test. Every case gets its own harness.
///
/// A harness of a server database gives each case its own schema and keeps an offset to the server's clock
/// there. Cases never rely on time standing still, only on [`Harness::advance`] moving it on.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens a new, empty store with these rules; each call opens another one.
    async fn open(&self, rules: Rules) -> Arc<dyn Store>;

    /// Another connection to an open store, as another process has it. For a store that allows only one
    /// process, one handle is enough.
    async fn connect(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::clone(store)
    }

    /// Ends the process that has the store open, as far as a test can, and opens the store again. `None` for
    /// a store that does not survive its process.
    async fn reopen(&self, store: Arc<dyn Store>) -> Option<Arc<dyn Store>>;

    /// Makes the store forget its last claim, whose lease the caller names, as a crash of its server or
    /// machine can. Opens the store again if necessary. `None` if the store cannot forget a claim.
    async fn forget(&self, _store: Arc<dyn Store>, _claimed: LeaseRef) -> Option<Arc<dyn Store>> {
        None
    }

    /// Waits until the store has done what it does after it has answered, such as admission after a settlement.
    async fn settle_down(&self, _store: &dyn Store) {}

    /// The store's wall clock.
    async fn now(&self) -> Timestamp;

    /// Moves the store's clock, wall and monotonic.
    async fn advance(&self, by: Duration);

    /// Moves the wall clock alone. `false` if the harness cannot do that.
    async fn jump_wall(&self, to: Timestamp) -> bool;

    /// Whether the clock moves only by [`Harness::advance`], so that cases can compare times to the millisecond.
    fn clock_is_manual(&self) -> bool {
        true
    }

    /// Whether a task can be enqueued for a worker in one step. Behind a server, only the server does that.
    fn enqueues_for_workers(&self) -> bool {
        true
    }

    /// Whether a tick enqueues the task that the caller gives. A server decides the task from its own row.
    fn fires_as_told(&self) -> bool {
        true
    }

    /// Whether the store keeps tokens. A server does not show its tokens to its clients.
    fn keeps_tokens(&self) -> bool {
        true
    }
}

/// The harness of [`MemoryStore`], with a defect if one is given.
pub struct MemoryHarness {
    clock: Arc<ManualClock>,
    fault: Option<Fault>,
    opened: std::sync::Mutex<Option<Arc<MemoryStore>>>,
}

impl MemoryHarness {
    /// A harness for a store without defects.
    pub fn new() -> Self {
        Self::with_fault(None)
    }

    /// A harness for a store with this defect.
    pub fn with_fault(fault: Option<Fault>) -> Self {
        Self { clock: Arc::new(ManualClock::new(START)), fault, opened: std::sync::Mutex::new(None) }
    }

    fn keep(&self, model: Model) -> Arc<dyn Store> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let store = Arc::new(MemoryStore::from_model(clock, model));
        *self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Arc::clone(&store));
        store
    }
}

impl Default for MemoryHarness {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Harness for MemoryHarness {
    async fn open(&self, rules: Rules) -> Arc<dyn Store> {
        self.keep(Model::new(rules).with_fault(self.fault))
    }

    /// The model takes the place of the disk, so that cases with a restart run here too.
    async fn reopen(&self, _store: Arc<dyn Store>) -> Option<Arc<dyn Store>> {
        let opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()?;
        Some(self.keep(opened.model().reopened()))
    }

    async fn forget(&self, _store: Arc<dyn Store>, claimed: LeaseRef) -> Option<Arc<dyn Store>> {
        let opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()?;
        Some(self.keep(opened.model().crashed(claimed)))
    }

    async fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn jump_wall(&self, to: Timestamp) -> bool {
        self.clock.jump_wall(to);
        true
    }
}
