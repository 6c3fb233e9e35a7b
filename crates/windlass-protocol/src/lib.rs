//! A model of the protocol of jobs and workflows on PostgreSQL. The tests visit every interleaving. For tests
//! only.
//!
//! The statements of `windlass-postgres/sql` that concern the gates are functions here, each named after its
//! file. A statement sees what was committed when it started and what its own transaction wrote. It locks
//! rows in the order in which the server locks them. If another transaction holds a row, the statement waits
//! and keeps its snapshot. Once it has the lock, it reads that row, and only that row, again. Locks end with
//! the transaction. Other transactions may run between any two statements. Between the snapshot of a
//! statement and its locks they run only if the statement has to wait, except in the scenarios that check the
//! order of those locks.
//!
//! ```text
//!  worker:     claim │ commit ┄┄ settle_done │ commit, or after the claim, for a task with a workflow:
//!              settle_receipt │ workflow_lock │ settle_leave │ workflow_pass │ workflow_forget │ commit
//!  admission:  todo_take │ workflow_make │ workflow_lock │ workflow_place │ workflow_pass │ workflow_forget
//!              │ job_lock (│ rollback ┄┄ job_make │ commit ┄┄ todo_take …) (│ job_promote, places passed on)
//!              (│ job_count (│ job_demote │ job_count) │ job_promote) │ commit (┄┄ unpark │ commit)
//!  sweep:      lock_expired │ held │ workflow_lock │ crash │ commit ┄┄ park_dead │ commit
//!  leader:     park_dead │ commit ┄┄ unpark │ commit
//!  operator:   job_make │ job_lock, job_set │ job_count │ job_demote │ … │ commit
//! ```
//!
//! Faults, in the scenarios that allow them: the first worker's process dies, or its lease runs out while it
//! lives; the answer to one of its claims or settlements is lost, and the request takes effect late or never;
//! an admission is rolled back.
//!
//! Modelled: limits and a change of one, rooms, positions of steps, steps that fail and block, a slow
//! transaction whose tasks have lower ids than tasks that were committed before it, freed places that are
//! passed on one for one, receipts, fences, unclaim, sweeps, rows of jobs and workflows that are made and
//! forgotten, lanes that gain and lose workers.
//!
//! Not modelled: time (delays, retries, snoozes, due tasks), suspects of crashes, a task that replaces a
//! ready one of lower priority, windows of jobs without a limit, paused and cancelled jobs, ready or held
//! tasks of a removed job, the policies skip and cancel of workflows, redrive, cancelling steps, claims and
//! batches of more than one task, keys, the doorbell, the repeated sweep of dead workers (so nothing repairs
//! what an earlier sweep missed). The order of ready tasks is not checked: a claim takes any of them.
//! Transactions that wait for the same lock get it in any order.
//!
//! [`protocol::Protocol`] has a switch for each choice that the promises depend on. Its default is what the
//! SQL files do.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks, jobs, workers and connections are indices of fixed tables"
)]
#![expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "statements have one shape, also those that never wait"
)]

pub mod db;
mod gate;
mod lease;
pub mod model;
pub mod protocol;
pub mod state;
pub mod story;
mod workflow;
