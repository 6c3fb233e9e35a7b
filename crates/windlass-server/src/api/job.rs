//! Jobs: groups of tasks under one limit.

use serde::{Deserialize, Serialize};
use windlass_core::{JobRecord, JobState, Name, Timestamp, gate::COUNT_MAX};

/// A job with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobView {
    /// Its name.
    pub job: Name,
    /// What it lets through.
    pub state: JobState,
    /// How many of its tasks run at once at most, over all workers; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The least time between two starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Tasks that run.
    pub running: u64,
    /// Tasks that may be claimed: the limit of the job already counts them.
    pub ready: u64,
    /// Tasks that wait for the limit of the job, counted up to 10,000.
    pub held: u64,
    /// Whether there may be more of them than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_at_least: bool,
    /// When it was first used or set.
    pub created_at: Timestamp,
    /// When the last start was recorded; kept for jobs with a delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_start_at: Option<Timestamp>,
}

impl From<JobRecord> for JobView {
    fn from(job: JobRecord) -> Self {
        Self {
            job: job.name,
            state: job.state,
            concurrency: job.concurrency,
            delay_ms: job.delay.map(|delay| delay.as_millis() as u64),
            running: job.running,
            ready: job.ready,
            held: job.held,
            held_at_least: job.held >= COUNT_MAX,
            created_at: job.created_at,
            last_start_at: job.last_start,
        }
    }
}

/// One page of jobs, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// The cursor of the next page, for `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Name>,
}

/// Changes to a job. A job that does not exist is created; an absent field stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// How many of its tasks run at once at most, over all workers; `null` for no limit.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Option<u32>>,
    /// The least time between two starts; `null` for none.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<Option<u64>>,
    /// `active`, `paused` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
    /// With `cancelled`: also asks the running tasks to end.
    #[serde(default)]
    pub now: bool,
}

/// The answer to the removal of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRemoval {
    /// The job.
    pub job: Name,
    /// Tasks that waited and were cancelled.
    pub cancelled: u64,
    /// Tasks that still run; the job is removed when the last of them has ended.
    pub running: u64,
}
