//! Why the tasks of a queue wait, from a bounded sample.

use std::collections::HashMap;

use windlass_core::{
    Name, Payload, State, TaskRecord,
    gate::GateView,
    store::{Depth, Filter, SummaryRecord},
    why::{Scene, summary::Summary},
};

use super::{Operations, Result, now};
use crate::api::{ErrorCode, ErrorDetail, QueueWhy};

/// States in which a task waits.
const WAITING: [State; 4] = [State::Ready, State::Held, State::Waiting, State::Scheduled];
/// The newest tasks of each of these states that are looked at.
const SAMPLE: u32 = 50;
/// Reads of the store for each of these states. Each looks at up to 20,000 tasks of all queues.
const READS_MAX: usize = 3;
/// Jobs and workflows that are looked up.
const GATES_MAX: usize = 40;
/// Tasks with several attempts that are read whole, because only that says how often a process died with one.
const WHOLE_MAX: usize = 20;

/// The job and the workflow of a task.
type Gate = (Option<Name>, Option<Name>);
/// What is known of a job and a workflow, and the state of the step that blocks it.
type Known = HashMap<Gate, (GateView, Option<State>)>;

impl Operations {
    /// Why the newest tasks of a queue wait: how many for each cause.
    pub async fn queue_why(&self, queue: &str) -> Result<QueueWhy> {
        let queue = Name::new("queue", queue)?;
        let scene = Scene::of(&*self.store, now()).await?;
        let mut depth = None;
        for lane in self.store.lane_records().await?.iter().filter(|lane| lane.queue == queue) {
            depth.get_or_insert_with(Depth::default).add(&lane.depth);
        }
        let paused = scene.paused.contains(&queue);
        let Some(depth) = depth.or_else(|| paused.then(Depth::default)) else {
            return Err(ErrorDetail::new(ErrorCode::NotFound, format!("queue {queue} not found"))
                .hint("a queue exists from its first task on"));
        };
        let (mut summary, mut looked_at) = (Summary::of(queue.clone()), 0);
        let (mut known, mut whole) = (Known::new(), 0);
        for state in WAITING.into_iter().filter(|state| depth.count(*state).n > 0) {
            for found in self.newest(&queue, state).await? {
                looked_at += 1;
                let mut task = record(found);
                if task.attempt > 1 && state != State::Scheduled && whole < WHOLE_MAX {
                    whole += 1;
                    task.crashes = self.store.task(task.id).await?.map_or(0, |task| task.crashes);
                }
                match self.gates_of(&task, &mut known).await? {
                    Some((gates, culprit)) => {
                        summary.add(&task, &scene.around(&task.lane, gates, culprit));
                    }
                    None => summary.skip(&task),
                }
            }
        }
        Ok(QueueWhy { queue, paused, depth, looked_at, causes: summary.causes() })
    }

    /// The newest tasks of a queue in a state, as far as bounded reads find them.
    async fn newest(&self, queue: &Name, state: State) -> Result<Vec<SummaryRecord>> {
        let filter = Filter { state: Some(state), queue: Some(queue.clone()), ..Filter::default() };
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..READS_MAX {
            let page = self.store.summaries(&filter, after, SAMPLE - found.len() as u32).await?;
            found.extend(page.tasks);
            after = page.next;
            if after.is_none() || found.len() as u32 >= SAMPLE {
                break;
            }
        }
        Ok(found)
    }

    /// What is known of the job and the workflow of a task; `None` if too many were looked up already.
    async fn gates_of(
        &self,
        task: &TaskRecord,
        known: &mut Known,
    ) -> Result<Option<(GateView, Option<State>)>> {
        let gate = (task.job.clone(), task.workflow.clone());
        if gate == (None, None) || !matches!(task.state, State::Held | State::Waiting) {
            return Ok(Some((GateView::default(), None)));
        }
        if let Some(found) = known.get(&gate) {
            return Ok(Some(found.clone()));
        }
        if known.len() >= GATES_MAX {
            return Ok(None);
        }
        let gates = self.store.gates().view(task).await?;
        let culprit = match gates.workflow.as_ref().and_then(|workflow| workflow.blocked_by) {
            Some(culprit) => {
                let filter = Filter { ids: Some(vec![culprit]), ..Filter::default() };
                self.store.summaries(&filter, None, 1).await?.tasks.first().map(|task| task.state)
            }
            None => None,
        };
        known.insert(gate, (gates.clone(), culprit));
        Ok(Some((gates, culprit)))
    }
}

/// A task without what a summary does not read.
fn record(task: SummaryRecord) -> TaskRecord {
    TaskRecord {
        id: task.id,
        state: task.state,
        lane: task.lane,
        priority: task.priority,
        payload: Payload::bytes([]),
        job: task.job,
        workflow: task.workflow,
        key: task.key,
        lease: 0,
        attempt: task.attempt,
        max_attempts: task.max_attempts,
        crashes: 0,
        timeout: None,
        due_at: task.due_at,
        started_at: task.started_at,
        ended_at: task.ended_at,
        worker: task.worker,
        progress: task.progress,
        output: None,
        error: task.error,
        cancel_requested: task.cancel_requested,
        attempts: Vec::new(),
    }
}
