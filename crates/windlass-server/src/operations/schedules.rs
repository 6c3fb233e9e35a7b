//! Recurring tasks: make, look at, pause, resume, run and remove schedules.

use std::collections::BTreeSet;

use windlass::{
    client::{Schedule, Schedules as OfStore},
    schedule::Spec,
};
use windlass_core::NewTask;

use super::{Operations, Result, view};
use crate::api::{
    EnqueueResponse, ErrorDetail, ScheduleRemoved, ScheduleRequest, ScheduleView, ScheduledTask, Schedules,
};

/// Ticks that are shown.
const TICKS_SHOWN: usize = 3;

impl Operations {
    /// Every schedule, by name.
    pub async fn schedules(&self) -> Result<Schedules> {
        let schedules = self.of_store().list().await?;
        Ok(Schedules {
            schedules: schedules.into_iter().map(|schedule| self.schedule_view(schedule)).collect(),
        })
    }

    /// One schedule.
    pub async fn schedule(&self, name: &str) -> Result<ScheduleView> {
        Ok(self.schedule_view(self.of_store().get(name).await?))
    }

    /// Makes a schedule, or replaces what it enqueues and when.
    pub async fn set_schedule(&self, name: &str, request: ScheduleRequest) -> Result<ScheduleView> {
        let task = self.checked(request.task).map_err(|mut error| {
            error.message = format!("task: {}", error.message);
            error
        })?;
        let lanes = BTreeSet::from([(task.queue.clone(), task.kind.clone())]);
        let spec = Spec::raw(&request.cron, task)?
            .tz(request.tz.as_deref().unwrap_or("UTC"))?
            .missed(request.missed.unwrap_or_default());
        let schedule = self.of_store().set(name, spec).await?;
        (self.schedules_changed)();
        Ok(ScheduleView { warnings: self.warnings(lanes).await, ..self.schedule_view(schedule) })
    }

    /// Stops a schedule.
    pub async fn pause_schedule(&self, name: &str) -> Result<ScheduleView> {
        Ok(self.schedule_view(self.of_store().pause(name).await?))
    }

    /// Lets a schedule go on with its next tick.
    pub async fn resume_schedule(&self, name: &str) -> Result<ScheduleView> {
        let schedule = self.of_store().resume(name).await?;
        (self.schedules_changed)();
        Ok(self.schedule_view(schedule))
    }

    /// Enqueues the task of a schedule now, without touching its ticks.
    pub async fn run_schedule(&self, name: &str) -> Result<EnqueueResponse> {
        let schedules = self.of_store();
        let spec = schedules.get(name).await?.spec;
        let enqueued = schedules.run(name).await?;
        let task = spec.ok().map(|spec| spec.task);
        let cancelled = task.as_ref().and_then(|task| task.job.clone()).filter(|_| enqueued.cancelled);
        let lanes = task.into_iter().map(|task| (task.queue, task.kind)).collect();
        Ok(EnqueueResponse {
            id: enqueued.id,
            existing: enqueued.existing,
            cancelled: enqueued.cancelled,
            warnings: self.warned(cancelled.into_iter().collect(), lanes).await,
        })
    }

    /// Removes a schedule.
    pub async fn remove_schedule(&self, name: &str) -> Result<ScheduleRemoved> {
        let schedules = self.of_store();
        schedules.remove(name).await?;
        let removed = windlass_core::Name::new("schedule", name).map_err(ErrorDetail::from)?;
        Ok(ScheduleRemoved { removed })
    }

    fn of_store(&self) -> OfStore {
        OfStore::new(self.store.clone())
    }

    fn schedule_view(&self, schedule: Schedule) -> ScheduleView {
        let next = schedule.upcoming(TICKS_SHOWN);
        let Schedule { name, spec, paused, last_at, last_task, .. } = schedule;
        let (spec, error) = match spec {
            Ok(spec) => (Some(spec), None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        ScheduleView {
            name,
            cron: spec.as_ref().map(|spec| spec.cron.to_string()),
            tz: spec.as_ref().map(|spec| spec.zone.to_string()),
            missed: spec.as_ref().map(|spec| spec.missed),
            task: spec.map(|spec| self.scheduled_task(spec.task)),
            paused,
            next,
            last_at,
            last_task,
            error,
            warnings: Vec::new(),
        }
    }

    fn scheduled_task(&self, task: NewTask) -> ScheduledTask {
        let (payload, payload_encoding) = view::shown(&(self.redact)(&task.kind, task.payload));
        ScheduledTask {
            kind: task.kind,
            queue: task.queue,
            payload,
            payload_encoding,
            priority: task.priority,
            job: task.job,
            job_concurrency: task.job_concurrency,
            workflow: task.workflow,
            on_failure: task.on_failure,
            max_attempts: task.max_attempts,
            timeout_ms: task.timeout.map(|timeout| timeout.as_millis() as u64),
        }
    }
}
