//! The vocabulary, the state table and the pure decisions of Windlass.
//!
//! Nothing in this crate does I/O, starts a thread, reads a clock or draws a random number: everything that a
//! decision depends on is an argument. Stores and the runtime apply the decisions.
//!
//! Reading order: [`state`] (how a task may move), [`task`] (what a task is), [`outcome`] and [`settlement`]
//! (how an attempt ends), [`gate`] (jobs and workflows), [`source`] and [`store`] (the contract of every
//! store).
//!
//! Every module has a short path at the root; `task/`, `worker/`, `store/`, `access/` and `text/` are the
//! folders of what belongs together.

mod access;
pub mod admission;
pub mod error;
pub mod forecast;
pub mod gate;
pub mod source;
pub mod store;
pub mod task;
pub mod text;
pub mod time;
pub mod trace;
pub mod why;
pub mod worker;

#[doc(inline)]
pub use access::{operators, session, token};
#[doc(hidden)]
pub use store::transfer;
pub use store::{depth, lanes, rules, usage};
pub use task::{attempt_log, id, name, outcome, payload, repeat, retry, schedule, settlement, state};
#[doc(hidden)]
pub use text::percent;
pub use worker::{affinity, crash, epoch};

pub use depth::{Count, Depth, Precision};
pub use error::{Error, Result};
pub use gate::{Gate, JobChange, JobRecord, JobState, OnFailure, WorkflowAction, WorkflowRecord};
pub use id::{LaneId, TaskId, WorkerId};
pub use name::Name;
pub use operators::{CallRecord, NewCall, Operators, RunRow};
pub use outcome::{Outcome, Output};
pub use payload::{Encoding, Payload};
pub use retry::RetryPolicy;
pub use rules::Rules;
pub use schedule::{Fire, ScheduleRow};
pub use session::{NewSession, SessionRecord, Sessions};
pub use settlement::{Settlement, settle};
pub use source::{ClaimAnswer, Demand, Hint, Hints, LeaseRef, SettleBatch, SettleItem, Settled, Source};
pub use state::{Event, State};
pub use store::{Gates, Schedules, Store, Tokens};
pub use task::{AttemptRecord, Claimed, Enqueued, Lane, NewTask, Start, TaskRecord};
pub use time::{Clock, Timestamp};
pub use token::{NewToken, Scope, Scopes, TokenHash, TokenRecord};
pub use trace::TraceContext;
pub use worker::{Counts, NewWorker, WorkerCounts, WorkerRecord, WorkerReport};
