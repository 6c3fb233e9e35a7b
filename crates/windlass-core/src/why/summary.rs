//! Why the tasks of a queue wait, all together: tasks with the same cause are one line.

use serde::{Deserialize, Serialize};

use super::{Surroundings, Why, human, why, word};
use crate::{id::TaskId, name::Name, state::State, task::TaskRecord, time::Timestamp};

/// One cause, and how many tasks of a sample it keeps waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// A reason code of [`Why`], or `not_looked_at`.
    pub code: String,
    /// The state that these tasks are in.
    pub state: State,
    /// How many tasks of the sample it is.
    pub count: u64,
    /// The job, for causes that a job has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Name>,
    /// The kind, if no worker handles it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Name>,
    /// One sentence for people.
    pub sentence: String,
    /// What would change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The newest of these tasks.
    pub example: TaskId,
}

/// A sample of the tasks of a queue, as it is added up.
#[derive(Debug)]
pub struct Summary {
    queue: Name,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    cause: Cause,
    /// The first time at which one of them is due.
    due_at: Option<Timestamp>,
    now: Timestamp,
}

impl Summary {
    /// An empty sample of a queue.
    pub fn of(queue: Name) -> Self {
        Self { queue, lines: Vec::new() }
    }

    /// Adds a task with the facts around it.
    pub fn add(&mut self, task: &TaskRecord, around: &Surroundings) {
        let Why { code, sentence, hint } = why(task, around);
        let is_of_job = code.starts_with("job_");
        let job = task.job.clone().filter(|_| is_of_job);
        let kind = (code == "no_worker").then(|| task.lane.kind.clone());
        let cause = Cause { code, state: task.state, count: 0, job, kind, sentence, hint, example: task.id };
        self.count(cause, task.due_at, around.now);
    }

    /// Adds a task whose job and workflow were not looked up.
    pub fn skip(&mut self, task: &TaskRecord) {
        let cause = Cause {
            code: "not_looked_at".to_owned(),
            state: task.state,
            count: 0,
            job: None,
            kind: None,
            sentence: "they belong to further jobs and workflows, which were not looked at".to_owned(),
            hint: Some(format!("windlass tasks why {}", task.id)),
            example: task.id,
        };
        self.count(cause, None, Timestamp::default());
    }

    fn count(&mut self, cause: Cause, due_at: Option<Timestamp>, now: Timestamp) {
        let is_same = |line: &&mut Line| {
            let known = &line.cause;
            (&known.code, known.state, &known.job, &known.kind)
                == (&cause.code, cause.state, &cause.job, &cause.kind)
        };
        if let Some(line) = self.lines.iter_mut().find(is_same) {
            line.cause.count += 1;
            line.due_at = line.due_at.into_iter().chain(due_at).min();
            return;
        }
        self.lines.push(Line { cause: Cause { count: 1, ..cause }, due_at, now });
    }

    /// The causes, the most frequent first.
    pub fn causes(self) -> Vec<Cause> {
        let Self { queue, lines } = self;
        let mut causes: Vec<_> = lines.into_iter().map(|line| line.told(&queue)).collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
    }
}

impl Line {
    /// The cause with words for all of its tasks. The sentence of a single task names that task's neighbours.
    fn told(self, queue: &Name) -> Cause {
        let mut cause = self.cause;
        let first = self.due_at.map_or_else(String::new, |due| {
            format!("; the first of them is due in {}", human(due.since(self.now)))
        });
        let scheduled = format!("windlass tasks ls --queue {} --state scheduled", word(queue));
        let (sentence, hint) = match cause.code.as_str() {
            "not_due" => (format!("scheduled: their time has not come{first}"), Some(scheduled)),
            "retry_wait" => {
                (format!("scheduled: an attempt failed and another one follows{first}"), Some(scheduled))
            }
            "workflow" if cause.count > 1 => (
                "waiting: behind earlier steps of their workflows".to_owned(),
                Some("windlass workflows ls".to_owned()),
            ),
            "workflow_blocked" if cause.count > 1 => (
                "waiting: a step of their workflow failed and blocks them".to_owned(),
                Some("windlass workflows ls --blocked".to_owned()),
            ),
            "about_to_start" => ("ready: they are about to be claimed".to_owned(), None),
            "admission" => (format!("{}: they are about to go on", cause.state), None),
            _ => return cause,
        };
        (cause.sentence, cause.hint) = (sentence, hint);
        cause
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        gate::{GateView, JobRecord, JobState},
        id::{LaneId, WorkerId},
        payload::Payload,
        task::Lane,
        why::Scene,
        worker::WorkerRecord,
    };

    fn name(text: &str) -> Name {
        Name::new("name", text).unwrap()
    }

    fn task(id: i64, state: State, kind: &str) -> TaskRecord {
        let lane = Arc::new(Lane { id: LaneId(1), queue: name("mail"), kind: name(kind) });
        TaskRecord {
            id: TaskId::from_raw(id),
            state,
            lane,
            priority: 0,
            payload: Payload::json(&1).unwrap(),
            job: None,
            workflow: None,
            key: None,
            lease: 0,
            attempt: 0,
            max_attempts: 10,
            crashes: 0,
            timeout: None,
            due_at: None,
            started_at: None,
            ended_at: None,
            worker: None,
            progress: None,
            output: None,
            error: None,
            cancel_requested: None,
            attempts: Vec::new(),
        }
    }

    fn worker(kind: &str) -> WorkerRecord {
        WorkerRecord {
            id: WorkerId(1),
            host: "h".into(),
            pid: 1,
            version: "0".into(),
            kinds: vec![name(kind)],
            queues: Vec::new(),
            slots: 2,
            in_flight: 2,
            available: 0,
            draining: false,
            memory_usage: 0.5,
            factor: 1.0,
            reason: String::new(),
            counts: crate::WorkerCounts::default(),
            live: true,
            ended: false,
            registered_at: Timestamp::default(),
            renewed_at: Timestamp::default(),
        }
    }

    fn scene() -> Scene {
        Scene { now: Timestamp::from_ms(1_000), paused: Vec::new(), workers: vec![worker("send")] }
    }

    fn causes(scene: &Scene, tasks: &[TaskRecord]) -> Vec<(String, u64, String)> {
        let mut summary = Summary::of(name("mail"));
        for task in tasks {
            summary.add(task, &scene.around(&task.lane, GateView::default(), None));
        }
        summary.causes().into_iter().map(|cause| (cause.code, cause.count, cause.sentence)).collect()
    }

    #[test]
    fn tasks_with_one_cause_are_one_line_and_the_most_come_first() {
        let later = |id, at| TaskRecord {
            due_at: Some(Timestamp::from_ms(at)),
            ..task(id, State::Scheduled, "send")
        };
        let tasks = [
            task(5, State::Ready, "draw"),
            later(4, 61_000),
            later(3, 11_000),
            later(2, 91_000),
            task(1, State::Ready, "send"),
            task(0, State::Ready, "send"),
        ];
        assert_eq!(
            causes(&scene(), &tasks),
            [
                (
                    "not_due".to_owned(),
                    3,
                    "scheduled: their time has not come; the first of them is due in 10.0 s".to_owned()
                ),
                (
                    "no_free_slot".to_owned(),
                    2,
                    "ready, but all slots of the 1 live worker(s) for it are taken".to_owned()
                ),
                (
                    "no_worker".to_owned(),
                    1,
                    "ready, but no live worker handles kind \"draw\" on queue mail".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn kinds_and_jobs_have_lines_of_their_own() {
        let mut summary = Summary::of(name("mail"));
        let scene = scene();
        for (id, job) in [(4, "a"), (3, "b"), (2, "a")] {
            let held = TaskRecord { job: Some(name(job)), ..task(id, State::Held, "send") };
            let record = JobRecord {
                name: name(job),
                state: JobState::Paused,
                concurrency: None,
                delay: Some(Duration::ZERO),
                created_at: Timestamp::default(),
                last_start: None,
                ready: 0,
                running: 0,
                held: 1,
            };
            let gates = GateView { job: Some(record), ..GateView::default() };
            summary.add(&held, &scene.around(&held.lane, gates, None));
        }
        for kind in ["x", "y"] {
            let ready = task(1, State::Ready, kind);
            summary.add(&ready, &scene.around(&ready.lane, GateView::default(), None));
        }
        let causes = summary.causes();
        let told: Vec<_> = causes.iter().map(|c| (c.code.as_str(), c.count, c.hint.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("job_paused", 2, Some("windlass jobs resume a")),
                ("job_paused", 1, Some("windlass jobs resume b")),
                ("no_worker", 1, Some("start a worker that has a handler for \"x\"")),
                ("no_worker", 1, Some("start a worker that has a handler for \"y\"")),
            ]
        );
        assert_eq!(causes[0].example, TaskId::from_raw(4), "the newest");
    }

    #[test]
    fn a_task_whose_gates_are_not_known_is_counted_as_such() {
        let mut summary = Summary::of(name("mail"));
        for id in [2, 1] {
            summary.skip(&task(id, State::Held, "send"));
        }
        let causes = summary.causes();
        assert_eq!((causes[0].code.as_str(), causes[0].count), ("not_looked_at", 2));
    }
}
