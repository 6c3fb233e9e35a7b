//! Why is this task not running? One sentence, one reason code, and what would change it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    crash::is_suspect,
    error::Result,
    gate::GateView,
    name::Name,
    state::State,
    store::Store,
    task::{Lane, TaskRecord},
    time::Timestamp,
    worker::WorkerRecord,
};

mod gated;
pub mod summary;
#[cfg(test)]
mod tests;

/// The facts that decide why a task does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The store's clock, or one near it: used for sentences only.
    pub now: Timestamp,
    /// Whether its queue is paused.
    pub queue_paused: bool,
    /// Live workers that have a handler for its kind and serve its queue.
    pub live_workers: u32,
    /// Free slots of those workers.
    pub free_slots: u32,
    /// Why one of them may not use all of its slots; empty if every worker may.
    pub held_back: String,
    /// Its job and its workflow.
    pub gates: GateView,
    /// The state of the step that blocks its workflow, if there is one and it is still kept.
    pub culprit_state: Option<State>,
}

/// What the tasks of all queues have around them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// The store's clock, or one near it: used for sentences only.
    pub now: Timestamp,
    /// Queues that are paused.
    pub paused: Vec<Name>,
    /// Workers of the last day.
    pub workers: Vec<WorkerRecord>,
}

impl Scene {
    /// Reads it from the store.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of(store: &dyn Store, now: Timestamp) -> Result<Self> {
        Ok(Self { now, paused: store.paused_queues().await?, workers: store.workers().await? })
    }

    /// The facts about a task with this job and this workflow.
    pub fn around(&self, lane: &Lane, gates: GateView, culprit_state: Option<State>) -> Surroundings {
        let takes = |worker: &&WorkerRecord| !worker.draining && worker.serves(&lane.queue, &lane.kind);
        let able: Vec<_> = self.workers.iter().filter(takes).collect();
        let reason = able.iter().map(|worker| worker.reason.clone()).find(|reason| !reason.is_empty());
        Surroundings {
            now: self.now,
            queue_paused: self.paused.contains(&lane.queue),
            live_workers: able.len() as u32,
            free_slots: able.iter().map(|worker| worker.available).sum(),
            held_back: reason.unwrap_or_default(),
            gates,
            culprit_state,
        }
    }
}

impl Surroundings {
    /// Reads the facts about a task from the store.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of(task: &TaskRecord, store: &dyn Store, now: Timestamp) -> Result<Self> {
        let scene = Scene::of(store, now).await?;
        let gates = if task.job.is_some() || task.workflow.is_some() {
            store.gates().view(task).await?
        } else {
            GateView::default()
        };
        let culprit = match gates.workflow.as_ref().and_then(|workflow| workflow.blocked_by) {
            Some(culprit) => store.task(culprit).await?,
            None => None,
        };
        Ok(scene.around(&task.lane, gates, culprit.map(|culprit| culprit.state)))
    }
}

/// The answer.
///
/// | code | state | missing |
/// |---|---|---|
/// | `not_due`, `retry_wait` | scheduled | time |
/// | `workflow` | waiting | the steps before it |
/// | `workflow_blocked` | waiting | a user's decision about the step that failed |
/// | `job_limit`, `job_window` | held | room in its job |
/// | `job_delay` | held | time since its job's last start |
/// | `job_paused`, `job_cancelled`, `job_removing` | held | its job to run |
/// | `queue_paused` | held, ready | its queue to run |
/// | `no_worker` | held, ready | a live worker that can run it |
/// | `admission` | waiting, held | nothing: it is about to be ready |
/// | `suspect` | held, ready | a worker without another group of suspects |
/// | `no_free_slot` | ready | a slot |
/// | `held_back` | ready | a slot that may be used: memory is short, tasks are slow, or the worker is new |
/// | `about_to_start` | ready | nothing |
/// | `running`, `cancelling` | running | |
/// | `done`, `dead`, `cancelled` | ended | |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// A stable reason code.
    pub code: String,
    /// One sentence for people.
    pub sentence: String,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Why {
    fn new(code: &str, sentence: impl Into<String>) -> Self {
        Self { code: code.to_owned(), sentence: sentence.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Says why a task is not running, or that it is, or that it has ended.
pub fn why(task: &TaskRecord, around: &Surroundings) -> Why {
    match task.state {
        State::Done => Why::new("done", "done: it has ended in success"),
        State::Cancelled => {
            let reason = task.error.as_deref().unwrap_or("by request");
            Why::new("cancelled", format!("cancelled: {reason}{}", gated::blocking(task, around)))
        }
        State::Dead => {
            let reason = task.error.as_deref().unwrap_or("no reason kept");
            Why::new("dead", format!("dead: {reason}{}", gated::blocking(task, around)))
                .hint(format!("windlass tasks retry {}", task.id))
        }
        State::Running => running(task, around),
        State::Scheduled => scheduled(task, around),
        State::Waiting => gated::waiting(task, around),
        State::Held => gated::held(task, around),
        State::Ready => ready(task, around),
    }
}

fn running(task: &TaskRecord, around: &Surroundings) -> Why {
    let since = around.now.since(task.started_at.unwrap_or(around.now));
    let worker = task.worker.map_or_else(|| "a worker".to_owned(), |worker| worker.to_string());
    if let Some(reason) = &task.cancel_requested {
        return Why::new("cancelling", format!("running on {worker}, asked to end: {reason}"));
    }
    Why::new("running", format!("running on {worker} for {} (attempt {})", human(since), task.attempt))
}

fn scheduled(task: &TaskRecord, around: &Surroundings) -> Why {
    let left = human(task.due_at.unwrap_or(around.now).since(around.now));
    match &task.error {
        Some(error) if task.attempt > 0 => {
            let (attempt, granted) = (task.attempt, task.max_attempts);
            Why::new(
                "retry_wait",
                format!(
                    "scheduled: attempt {attempt} of {granted} failed ({error}); the next is due in {left}"
                ),
            )
        }
        _ => Why::new("not_due", format!("scheduled: due in {left}")),
    }
}

fn ready(task: &TaskRecord, around: &Surroundings) -> Why {
    if let Some(why) = is_not_served(task, around, "ready, but") {
        return why;
    }
    if is_suspect(task.crashes) {
        return suspect(task, "ready, but");
    }
    if around.free_slots == 0 {
        let (workers, reason) = (around.live_workers, &around.held_back);
        if !reason.is_empty() {
            let text = format!(
                "ready, but the {workers} live worker(s) for it may not use all of their slots: {reason}"
            );
            return Why::new("held_back", text).hint("`windlass workers ls` shows memory and factors");
        }
        return Why::new(
            "no_free_slot",
            format!("ready, but all slots of the {workers} live worker(s) for it are taken"),
        )
        .hint("raise --slots or start another worker");
    }
    Why::new("about_to_start", "ready: it is about to be claimed")
}

/// Several processes died while it ran, and other suspects run first.
fn suspect(task: &TaskRecord, state: &str) -> Why {
    let crashes = task.crashes;
    Why::new(
        "suspect",
        format!(
            "{state} its process died with it {crashes} times: it waits for a worker that runs no other group of suspects, or for an empty one"
        ),
    )
    .hint("start another worker: it runs another group of suspects")
}

/// Its queue is paused, or no live worker has its kind: the same for ready and for held tasks.
fn is_not_served(task: &TaskRecord, around: &Surroundings, state: &str) -> Option<Why> {
    let (queue, kind) = (&task.lane.queue, task.lane.kind.as_str());
    if around.queue_paused {
        return Some(
            Why::new("queue_paused", format!("{state} queue {queue} is paused"))
                .hint(format!("windlass queues resume {}", word(queue))),
        );
    }
    (around.live_workers == 0).then(|| {
        Why::new("no_worker", format!("{state} no live worker handles kind {kind:?} on queue {queue}"))
            .hint(format!("start a worker that has a handler for {kind:?}"))
    })
}

/// A name, quoted for a shell if necessary.
pub fn word(name: &Name) -> String {
    let text = name.as_str();
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:@%+=,".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A duration for people: two significant units at most.
pub fn human(duration: Duration) -> String {
    let ms = duration.as_millis();
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}
