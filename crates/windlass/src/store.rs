//! The contract of a store: the traits that it implements, what their calls take and answer, and the
//! decisions that it applies.
//!
//! An application needs [`SharedStore`] and what [`open`](crate::open) returns. The rest is for authors of
//! stores. A store implements [`Source`] for workers and [`Store`] for clients and operators, with [`Gates`],
//! [`Schedules`] and [`Tokens`]. It decides nothing about a task itself: [`decisions`] says how an attempt
//! ends, which task of a job starts, and what follows from a crash.
//!
//! The records in here have public fields and can be built in full, on purpose. A new field must not compile
//! in a store that does not fill it. So this module may change in a release in which the rest of this crate
//! does not.
//!
//! ```
//! use windlass::store::{Filter, SharedStore};
//!
//! async fn is_empty(store: &SharedStore) -> windlass::Result<bool> {
//!     Ok(store.tasks(&Filter::default(), None, 1).await?.tasks.is_empty())
//! }
//! # #[tokio::main] async fn main() -> windlass::Result<()> {
//! assert!(is_empty(&windlass::open("sqlite::memory:").await?).await?);
//! # Ok(()) }
//! ```

pub(crate) mod open;

/// What workers need of a store.
#[doc(inline)]
pub use windlass_core::source::{
    ClaimAnswer, Demand, DutyReport, Hint, Hints, LeaseRef, Loop, Reconciled, Renewed, Rest, SettleBatch,
    SettleItem, Settled, Source,
};
/// What clients and operators need of a store.
#[doc(inline)]
pub use windlass_core::store::{
    Changed, Filter, Finding, Gates, LaneRecord, PAGE_MAX, Page, READY_LANES_MAX, Redrive, Retention, Safe,
    Schedules, SharedStore, Store, StoreInfo, Tokens, only,
};
/// What these calls take and answer.
#[doc(inline)]
pub use windlass_core::{
    AttemptRecord, Claimed, Clock, Count, Depth, Encoding, Enqueued, Error, Fire, Gate, JobChange, JobRecord,
    JobState, Lane, LaneId, Name, NewTask, NewToken, NewWorker, OnFailure, Outcome, Payload, Precision,
    Result, RetryPolicy, Rules, ScheduleRow, Scope, Scopes, Settlement, Start, State, TaskId, TaskRecord,
    Timestamp, TokenHash, TokenRecord, TraceContext, WorkerId, WorkerRecord, WorkerReport, WorkflowAction,
    WorkflowRecord,
    affinity::Prefers,
    depth::States,
    gate::GateView,
    schedule::DueSchedules,
    task::{AttemptResult, Key},
    token::{BOUND_MAX, Bound, TOKENS_MAX},
    usage::{EnqueueMeter, InUse, PoolMeter, PoolUsage, ReadyLines, Usage},
    worker::{LEASE_TTL_MAX, Registration, SLOTS_MAX, check_slots, not_live},
};

/// What a store applies and never decides: functions of values, without I/O and without a clock.
pub mod decisions {
    #[doc(inline)]
    pub use windlass_core::{
        affinity, attempt_log, crash, epoch, gate, repeat, settle, settlement, state, why,
    };
}
