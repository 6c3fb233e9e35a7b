//! Schedules: create, list, pause, run and remove.

use std::fmt;

use windlass_core::{Enqueued, Error, Name, Result, ScheduleRow, TaskId, Timestamp, store::SharedStore};

use crate::schedule::{Passed, Spec, Unreadable, passed::passed};

/// Handles the schedules of a store. Cheap to clone.
///
/// Workers notice a change within about 15 seconds;
/// [`wake_schedules`](crate::worker::WorkerHandle::wake_schedules) tells the worker of this process at once.
///
/// ```no_run
/// use windlass::{Client, Task, schedule::Spec};
///
/// #[derive(serde::Serialize, serde::Deserialize, Task)]
/// struct Report { to: String }
///
/// # async fn example(client: Client) -> anyhow::Result<()> {
/// let spec = Spec::new("0 7 * * MON-FRI", &Report { to: "ada@example.com".into() })?.tz("Europe/Berlin")?;
/// let schedule = client.schedules().set("morning-report", spec).await?;
/// println!("next at {:?}", schedule.next_at);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Schedules {
    store: SharedStore,
}

/// The state of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: Name,
    /// What it enqueues and when, or why the stored text cannot be read.
    pub spec: Result<Spec, Unreadable>,
    /// Whether it is paused.
    pub paused: bool,
    /// The next tick; `None` if there is none.
    pub next_at: Option<Timestamp>,
    /// The last tick that was fired.
    pub last_at: Option<Timestamp>,
    /// The task of that tick.
    pub last_task: Option<TaskId>,
}

impl Schedule {
    /// The next ticks, at most `n`; none while it is paused.
    pub fn upcoming(&self, n: usize) -> Vec<Timestamp> {
        let first = self.next_at.filter(|_| !self.paused);
        let after = |tick: &Timestamp| self.spec.as_ref().ok().and_then(|spec| spec.next_after(*tick));
        std::iter::successors(first, after).take(n).collect()
    }

    /// Ticks that have passed without a task of their own, counted up to `most`; `None` if there are none,
    /// and while it is paused.
    pub fn passed(&self, now: Timestamp, most: u32) -> Option<Passed> {
        let spec = self.spec.as_ref().ok().filter(|_| !self.paused)?;
        passed(spec, self.next_at, self.last_at, now, most)
    }
}

impl From<ScheduleRow> for Schedule {
    fn from(row: ScheduleRow) -> Self {
        let ScheduleRow { name, spec, paused, next_at, last_at, last_task } = row;
        Self { name, spec: Spec::from_stored(&spec), paused, next_at, last_at, last_task }
    }
}

impl Schedules {
    /// The schedules of this store.
    pub fn new(store: SharedStore) -> Self {
        Self { store }
    }

    /// Creates a schedule, or replaces what it enqueues and when. Its first tick is the next one from now. A
    /// schedule whose times do not change keeps the tick that it waits for, even an overdue one. A paused
    /// schedule stays paused.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name or the task is not valid.
    pub async fn set(&self, name: &str, spec: Spec) -> Result<Schedule> {
        let name = Name::new("schedule", name)?;
        spec.check(self.store.rules())?;
        let old = self.row(&name).await?;
        let waits_for = old.as_ref().and_then(|row| {
            let told = Spec::from_stored(&row.spec).ok()?;
            row.next_at.filter(|_| (&told.cron, &told.zone) == (&spec.cron, &spec.zone))
        });
        let next_at = match waits_for {
            Some(tick) => Some(tick),
            None => spec.next_after(self.now().await?),
        };
        let paused = old.as_ref().is_some_and(|row| row.paused);
        let (last_at, last_task) = old.map_or((None, None), |row| (row.last_at, row.last_task));
        let row = ScheduleRow { name, spec: spec.to_stored()?, paused, next_at, last_at, last_task };
        self.store.schedules().put(&row).await?;
        Ok(row.into())
    }

    /// Every schedule, by name.
    ///
    /// # Errors
    /// Any [`Error`] of the store.
    pub async fn list(&self) -> Result<Vec<Schedule>> {
        Ok(self.store.schedules().list().await?.into_iter().map(Schedule::from).collect())
    }

    /// One schedule.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn get(&self, name: &str) -> Result<Schedule> {
        self.known(name).await.map(Schedule::from)
    }

    /// Stops a schedule: ticks pass without a task until it is resumed.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn pause(&self, name: &str) -> Result<Schedule> {
        let mut row = self.known(name).await?;
        if !row.paused {
            row.paused = true;
            self.store.schedules().put(&row).await?;
        }
        Ok(row.into())
    }

    /// Resumes a paused schedule with the next tick from now; the ticks that passed meanwhile are not made
    /// up.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name; [`Error::Conflict`] if it cannot be read.
    pub async fn resume(&self, name: &str) -> Result<Schedule> {
        let mut row = self.known(name).await?;
        if row.paused {
            let spec = readable(&row)?;
            row.paused = false;
            row.next_at = spec.next_after(self.now().await?);
            self.store.schedules().put(&row).await?;
        }
        Ok(row.into())
    }

    /// Enqueues the task of a schedule now, even of a paused one. Its ticks stay as they are.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name; [`Error::Conflict`] if it cannot be read.
    pub async fn run(&self, name: &str) -> Result<Enqueued> {
        let spec = readable(&self.known(name).await?)?;
        let answers = self.store.enqueue(vec![spec.task]).await?;
        answers.into_iter().next().ok_or_else(|| Error::Unknown("the store gave no id".into()))
    }

    /// Removes a schedule. Tasks that it enqueued stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let name = Name::new("schedule", name)?;
        if self.store.schedules().remove(&name).await? { Ok(()) } else { Err(not_found(&name)) }
    }

    async fn row(&self, name: &Name) -> Result<Option<ScheduleRow>> {
        self.store.schedules().find(name).await
    }

    async fn known(&self, name: &str) -> Result<ScheduleRow> {
        let name = Name::new("schedule", name)?;
        self.row(&name).await?.ok_or_else(|| not_found(&name))
    }

    /// The time of the store's clock, which workers use, not that of this process.
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.store.schedules().due(1).await?.now)
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedules").finish_non_exhaustive()
    }
}

fn readable(row: &ScheduleRow) -> Result<Spec> {
    Spec::from_stored(&row.spec).map_err(|problem| {
        Error::Conflict(format!("schedule {:?} cannot be read: {problem}", row.name.as_str()))
    })
}

fn not_found(name: &Name) -> Error {
    Error::NotFound(format!("schedule {:?}", name.as_str()))
}
