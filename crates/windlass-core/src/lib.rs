//! The vocabulary, the state table and the pure decisions of Windlass.
//!
//! Nothing in this crate does I/O, starts a thread, reads a clock or draws a random number: everything that a
//! decision depends on is an argument. Stores and the runtime apply the decisions.
//!
//! Reading order: [`state`] (how a task may move), [`task`] (what a task is), [`outcome`] and [`settlement`]
//! (how an attempt ends), [`gate`] (jobs and workflows), [`source`] and [`store`] (the contract of every
//! store).

pub mod admission;
pub mod affinity;
pub mod attempt_log;
pub mod crash;
pub mod depth;
pub mod epoch;
pub mod error;
pub mod forecast;
pub mod gate;
pub mod id;
pub mod lanes;
pub mod name;
pub mod operators;
pub mod outcome;
pub mod payload;
#[doc(hidden)]
pub mod percent;
pub mod repeat;
pub mod retry;
pub mod rules;
pub mod schedule;
pub mod session;
pub mod settlement;
pub mod source;
pub mod state;
pub mod store;
pub mod task;
pub mod text;
pub mod time;
pub mod token;
pub mod trace;
#[doc(hidden)]
pub mod transfer;
pub mod usage;
pub mod why;
pub mod worker;

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
