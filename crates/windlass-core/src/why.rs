//! Why is this task not running? One sentence, one reason code, and what would change it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{state::State, task::TaskRecord, time::Timestamp};

/// What is known around a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// The store's clock.
    pub now: Timestamp,
    /// Whether its queue is paused.
    pub queue_paused: bool,
    /// Live workers that have a handler for its kind and serve its queue.
    pub live_workers: u32,
    /// Free slots of those workers.
    pub free_slots: u32,
}

/// The answer.
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

/// Says why a task is not running, or that it is, or that it has ended.
pub fn why(task: &TaskRecord, around: &Surroundings) -> Why {
    let answer =
        |code: &str, sentence: String, hint: Option<String>| Why { code: code.to_owned(), sentence, hint };
    let (queue, kind) = (&task.lane.queue, &task.lane.kind);
    let resume = || Some(format!("windlass queues resume {queue}"));
    match task.state {
        State::Done => answer("done", "done: it has ended in success".into(), None),
        State::Cancelled => {
            answer("cancelled", format!("cancelled: {}", task.error.as_deref().unwrap_or("by request")), None)
        }
        State::Dead => answer(
            "dead",
            format!("dead: {}", task.error.as_deref().unwrap_or("no reason kept")),
            Some(format!("windlass tasks retry {}", task.id)),
        ),
        State::Running => running(task, around),
        State::Scheduled => {
            let left = task.due_at.unwrap_or(around.now).since(around.now);
            if task.attempt > 0 && task.error.is_some() {
                answer(
                    "retry_wait",
                    format!(
                        "scheduled: attempt {} of {} failed ({}); the next is due in {}",
                        task.attempt,
                        task.max_attempts,
                        task.error.as_deref().unwrap_or_default(),
                        human(left)
                    ),
                    None,
                )
            } else {
                answer("not_due", format!("scheduled: due in {}", human(left)), None)
            }
        }
        State::Waiting => answer("workflow", "waiting: behind an earlier task of its workflow".into(), None),
        State::Held => answer("job", "held: its job has no room".into(), None),
        State::Ready if around.queue_paused => {
            answer("queue_paused", format!("ready, but queue {queue} is paused"), resume())
        }
        State::Ready if around.live_workers == 0 => answer(
            "no_worker",
            format!("ready, but no live worker handles kind {:?} on queue {queue}", kind.as_str()),
            Some(format!("start a worker that has a handler for {:?}", kind.as_str())),
        ),
        State::Ready if task.crashes > 0 => answer(
            "suspect",
            format!(
                "ready, but its process died with it {} time(s): it runs when its worker has no other suspect",
                task.crashes
            ),
            None,
        ),
        State::Ready if around.free_slots == 0 => answer(
            "no_free_slot",
            format!("ready, but all slots of the {} live worker(s) for it are taken", around.live_workers),
            Some("raise --slots or start another worker".into()),
        ),
        State::Ready => answer("about_to_start", "ready: it is about to be claimed".into(), None),
    }
}

fn running(task: &TaskRecord, around: &Surroundings) -> Why {
    let since = around.now.since(task.started_at.unwrap_or(around.now));
    let worker = task.worker.map_or_else(|| "a worker".to_owned(), |worker| worker.to_string());
    match &task.cancel_requested {
        Some(reason) => Why {
            code: "cancelling".into(),
            sentence: format!("running on {worker}, asked to end: {reason}"),
            hint: None,
        },
        None => Why {
            code: "running".into(),
            sentence: format!("running on {worker} for {} (attempt {})", human(since), task.attempt),
            hint: None,
        },
    }
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
