//! Reading a store.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use windlass_core::{
    Lane, Name, State, TaskId, TaskRecord, WorkerRecord,
    store::{Depth, Filter, LaneRecord, PAGE_MAX, Page, StoreInfo},
    usage::ReadyLines,
};

use super::{Model, Now};

/// How long a worker that died or retired is still shown.
const TOMBSTONE_AGE: Duration = Duration::from_hours(24);

impl Model {
    /// One task.
    pub fn task(&self, id: TaskId) -> Option<TaskRecord> {
        self.tasks.get(&id).map(|task| task.record.clone())
    }

    /// One page of tasks, newest first.
    pub fn tasks(&self, filter: &Filter, after: Option<TaskId>, limit: u32) -> Page {
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let mut found = self
            .tasks
            .values()
            .rev()
            .map(|task| &task.record)
            .filter(|task| after.is_none_or(|after| task.id < after) && filter.matches(task));
        let tasks: Vec<_> = found.by_ref().take(limit).cloned().collect();
        let next = found.next().and_then(|_| tasks.last()).map(|task| task.id);
        Page { tasks, next }
    }

    /// Those of the tasks that have ended or do not exist.
    pub fn ended(&self, ids: &[TaskId]) -> Vec<(TaskId, Option<TaskRecord>)> {
        ids.iter()
            .map(|id| (*id, self.task(*id)))
            .filter(|(_, task)| task.as_ref().is_none_or(|task| task.state.is_ended()))
            .collect()
    }

    /// The lanes that a worker with these kinds and queues serves; no queue means all.
    pub fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Vec<Arc<Lane>> {
        let served = |lane: &&Arc<Lane>| {
            kinds.contains(&lane.kind) && (queues.is_empty() || queues.contains(&lane.queue))
        };
        self.lanes_in_use().filter(served).cloned().collect()
    }

    /// Every lane in use with its figures.
    pub fn lane_records(&self) -> Vec<LaneRecord> {
        let record = |lane: &Arc<Lane>| {
            let mut depth = Depth::default();
            for task in self.tasks.values().filter(|task| task.record.lane.id == lane.id) {
                depth.change(task.record.state, 1);
            }
            LaneRecord {
                queue: lane.queue.clone(),
                kind: lane.kind.clone(),
                paused: self.paused.contains(&lane.queue),
                depth,
            }
        };
        self.lanes_in_use().map(record).collect()
    }

    /// The first ready task of each lane.
    pub fn ready_lines(&self) -> ReadyLines {
        let next = |lane: &Arc<Lane>| {
            let is_plain = |task: &&super::Task| {
                task.record.lane.id == lane.id
                    && task.record.state == State::Ready
                    && !self.is_suspect(task.record.id)
            };
            let place = |task: &super::Task| (Reverse(task.record.priority), task.ready_seq);
            let (_, head) = self.tasks.values().filter(is_plain).map(place).min()?;
            Some((lane.id, lane.queue.clone(), head as i64))
        };
        ReadyLines { last: self.last_ready_seq as i64, heads: self.lanes.iter().filter_map(next).collect() }
    }

    /// Every worker, and those that died or retired in the last day.
    pub fn workers(&self, now: Now) -> Vec<WorkerRecord> {
        let clock = self.lease_clock(now);
        self.workers
            .iter()
            .filter(|(_, worker)| worker.gone.is_none_or(|gone| clock.monotonic < gone + TOMBSTONE_AGE))
            .map(|(id, worker)| WorkerRecord {
                id: *id,
                host: worker.about.host.clone(),
                pid: worker.about.pid,
                version: worker.about.version.clone(),
                kinds: worker.about.kinds.clone(),
                queues: worker.about.queues.clone(),
                slots: worker.about.slots,
                in_flight: worker.report.in_flight,
                available: worker.report.available,
                draining: worker.report.draining,
                memory_usage: worker.report.memory_usage,
                counts: worker.report.counts.clone(),
                factor: worker.report.factor,
                reason: worker.report.reason.clone(),
                live: worker.is_live(clock),
                ended: worker.gone.is_some(),
                registered_at: worker.registered_at,
                renewed_at: worker.renewed_at,
            })
            .collect()
    }

    /// What the store reports about itself.
    pub fn info(&self) -> StoreInfo {
        let kept = |task: &&TaskRecord| matches!(task.state, State::Done | State::Cancelled);
        let history: Vec<_> = self.tasks.values().map(|task| &task.record).filter(kept).collect();
        StoreInfo {
            backend: "memory".to_owned(),
            location: "this process".to_owned(),
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: 1,
            bytes: 0,
            wal_bytes: 0,
            free_disk_bytes: 0,
            history_rows: history.len() as u64,
            history_bytes: history.iter().map(|task| bytes_of(task)).sum(),
            durable: false,
            created: true,
            recovered: 0,
        }
    }
}

/// Approximately how many bytes a kept task takes.
pub(super) fn bytes_of(task: &TaskRecord) -> u64 {
    let output = task.output.as_ref().map_or(0, windlass_core::Payload::len);
    (task.payload.len() + output + task.error.as_ref().map_or(0, String::len)) as u64
}
