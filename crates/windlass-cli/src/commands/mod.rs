//! One file for each command: its arguments, and what it does.

pub mod access;
pub mod completions;
pub mod config;
pub mod consume;
pub mod doctor;
pub mod enqueue;
pub mod health;
pub mod jobs;
pub mod queues;
pub mod runs;
pub mod schedules;
pub mod store;
pub mod tasks;
pub mod up;
pub mod worker;
pub mod workers;
pub mod workflows;
