//! One file for each command: its arguments, and what it does.

pub mod activity;
pub mod backup;
pub mod completions;
pub mod config;
pub mod consume;
pub mod doctor;
pub mod enqueue;
pub mod health;
pub mod import;
pub mod jobs;
pub mod migrate;
pub mod queues;
pub mod restore;
pub mod runs;
pub mod schedules;
pub mod sessions;
pub mod store_copy;
pub mod tasks;
pub mod token;
pub mod up;
pub mod worker;
pub mod workers;
pub mod workflows;
