//! Recurring tasks: make, look at, pause, resume, run and remove schedules.

use std::collections::{BTreeSet, HashMap};

use windlass::{
    client::{Schedule, Schedules as OfStore},
    schedule::{Missed, Passed, Spec},
};
use windlass_core::{
    NewTask, State, TaskId, Timestamp,
    store::{FILTER_IDS_MAX, Filter},
};

use super::{Operations, Result, view};
use crate::api::{
    EnqueueResponse, ErrorDetail, PassedTicks, ScheduleRemoved, ScheduleRequest, ScheduleView, ScheduledTask,
    Schedules,
};

/// Ticks that are shown.
const TICKS_SHOWN: usize = 3;
/// Ticks that have passed without a task are counted up to this.
const PASSED_MAX: u32 = 1_000;
/// The same for each schedule of a list.
const PASSED_IN_LIST_MAX: u32 = 100;

impl Operations {
    /// Every schedule, by name.
    pub async fn schedules(&self) -> Result<Schedules> {
        let schedules = self.of_store().list().await?;
        let (now, states) = (self.schedules_now().await?, self.last_states(&schedules).await?);
        let view = |schedule: Schedule| {
            let passed = passed(&schedule, now, PASSED_IN_LIST_MAX);
            let state = schedule.last_task.and_then(|task| states.get(&task).copied());
            ScheduleView { passed, last_task_state: state, ..self.schedule_view(schedule) }
        };
        Ok(Schedules { schedules: schedules.into_iter().map(view).collect() })
    }

    /// One schedule.
    pub async fn schedule(&self, name: &str) -> Result<ScheduleView> {
        let schedule = self.of_store().get(name).await?;
        let passed = passed(&schedule, self.schedules_now().await?, PASSED_MAX);
        let state = self.last_states(std::slice::from_ref(&schedule)).await?.into_values().next();
        Ok(ScheduleView { passed, last_task_state: state, ..self.schedule_view(schedule) })
    }

    /// The clock of the store, by which ticks come.
    async fn schedules_now(&self) -> Result<Timestamp> {
        Ok(self.store.schedules().due(1).await?.now)
    }

    /// The states of the last tasks of schedules, as far as they are kept.
    async fn last_states(&self, schedules: &[Schedule]) -> Result<HashMap<TaskId, State>> {
        let tasks: Vec<_> = schedules.iter().filter_map(|schedule| schedule.last_task).collect();
        let mut states = HashMap::with_capacity(tasks.len());
        for ids in tasks.chunks(FILTER_IDS_MAX) {
            let filter = Filter { ids: Some(ids.to_vec()), ..Filter::default() };
            let found = self.store.summaries(&filter, None, ids.len() as u32).await?;
            states.extend(found.tasks.into_iter().map(|task| (task.id, task.state)));
        }
        Ok(states)
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
        let zone = schedule.spec.as_ref().ok().map(|spec| spec.zone.clone());
        let local = |tick: &Timestamp| zone.as_ref().map(|zone| zone.text(*tick));
        let next_local = next.iter().filter_map(local).collect();
        let words = |spec: &Spec| spec.cron.words().unwrap_or_else(|| spec.cron.to_string());
        let Schedule { name, spec, paused, last_at, last_task, .. } = schedule;
        let (spec, error) = match spec {
            Ok(spec) => (Some(spec), None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        ScheduleView {
            name,
            cron: spec.as_ref().map(|spec| spec.cron.to_string()),
            words: spec.as_ref().map(words),
            tz: spec.as_ref().map(|spec| spec.zone.to_string()),
            missed: spec.as_ref().map(|spec| spec.missed),
            task: spec.map(|spec| self.scheduled_task(spec.task)),
            paused,
            next,
            next_local,
            last_at,
            last_task,
            last_task_state: None,
            passed: None,
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

fn passed(schedule: &Schedule, now: Timestamp, most: u32) -> Option<PassedTicks> {
    let missed = schedule.spec.as_ref().ok()?.missed;
    let found = schedule.passed(now, most)?;
    Some(PassedTicks {
        count: found.count,
        at_least: found.at_least,
        first_at: found.first,
        last_at: found.last,
        overdue: found.overdue,
        sentence: passed_sentence(&found, missed),
    })
}

/// "3 ticks have passed without a task: no worker fires them".
pub(crate) fn passed_sentence(passed: &Passed, missed: Missed) -> String {
    let ticks = match (passed.count, passed.at_least) {
        (1, false) => "1 tick has passed without a task".to_owned(),
        (n, false) => format!("{n} ticks have passed without a task"),
        (n, true) => format!("at least {n} ticks have passed without a task"),
    };
    if passed.overdue {
        return format!("{ticks}: no worker fires this schedule");
    }
    let policy = match missed {
        Missed::Once => "one task made up for all that were missed",
        Missed::Skip => "a tick that is more than a minute late is skipped",
    };
    format!("{ticks}: no worker was there, or the schedule was paused or changed; {policy}")
}
