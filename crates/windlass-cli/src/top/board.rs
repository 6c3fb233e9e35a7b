//! The data on the board: queues, jobs, workers, figures, as the server reports them.

use serde::Deserialize;
use windlass_core::{JobState, Name, State, TaskId, store::Depth};
use windlass_server::api::{Flow, JobView, Overview, QueueView, Snapshot, TaskView, WorkerState};

/// One answer of the server.
#[derive(Debug, Clone, Default)]
pub struct Board {
    pub overview: Overview,
    /// The fleet at one moment, as the dashboard shows it; a server of an older version has none.
    pub snapshot: Option<Snapshot>,
    pub queues: Vec<Queue>,
    pub jobs: Vec<Job>,
    /// Whether the server has more jobs than are shown.
    pub more_jobs: bool,
    pub workers: Vec<Worker>,
}

impl Board {
    /// How a queue moves.
    pub fn flow(&self, queue: &Name) -> Option<&Flow> {
        let queues = self.snapshot.as_ref().map(|snapshot| &snapshot.queues)?;
        queues.iter().find(|flow| flow.queue == *queue).map(|found| &found.flow)
    }
}

/// A queue, over all of its kinds.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    pub name: Name,
    pub paused: bool,
    pub depth: Depth,
}

impl From<QueueView> for Queue {
    fn from(queue: QueueView) -> Self {
        let mut depth = Depth::default();
        for kind in &queue.kinds {
            depth.add(&kind.depth);
        }
        Self { name: queue.queue, paused: queue.paused, depth }
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub name: Name,
    pub state: JobState,
    pub limit: Option<u32>,
    pub running: u64,
    pub ready: u64,
    pub held: u64,
}

impl From<JobView> for Job {
    fn from(job: JobView) -> Self {
        Self {
            name: job.job,
            state: job.state,
            limit: job.concurrency,
            running: job.running,
            ready: job.ready,
            held: job.held,
        }
    }
}

/// Every worker, as the API lists them.
#[derive(Debug, Deserialize)]
pub struct Workers {
    pub workers: Vec<Worker>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Worker {
    #[serde(rename = "worker_id")]
    pub id: String,
    pub state: WorkerState,
    pub host: String,
    #[serde(rename = "max_capacity")]
    pub slots: u32,
    pub in_flight: u32,
    /// Share of the memory limit that applies, 0 to 1.
    pub memory_usage: f64,
    /// The share of its slots that the worker uses at most, 0 to 1.
    pub factor: f64,
    /// Why it does not use all of them.
    pub reason: String,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskLine {
    pub id: TaskId,
    pub state: State,
    pub kind: Name,
    pub attempt: u32,
    pub max_attempts: u32,
    pub error: Option<String>,
}

impl From<&TaskView> for TaskLine {
    fn from(task: &TaskView) -> Self {
        Self {
            id: task.id,
            state: task.state,
            kind: task.kind.clone(),
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            error: task.error.clone(),
        }
    }
}
