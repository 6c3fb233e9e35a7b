//! One look at the store: its figures, its workers, its jobs at their limit.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;
use windlass::{client::Schedule, inside::Ages};
use windlass_core::{
    Error, JobRecord, JobState, Name, Result, Timestamp, WorkerRecord, WorkflowRecord,
    store::{Depth, LaneRecord, SharedStore},
    usage::ReadyLines,
};

use super::{
    Backlogs,
    fleet::Fleet,
    tracks::{Mark, Tracks},
};
use crate::{
    api::{JobAtLimit, LastAudit, SeriesPoint, Snapshot, StoreHealth},
    operations::passed_sentence,
};

/// A look that takes longer has failed.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// Jobs that one look reads. Further ones are read by the next looks, in turns.
const JOBS_PER_LOOK: u32 = 200;
/// Most jobs at their limit that are kept.
const JOBS_MAX: usize = 100;
/// Most blocked workflows that are read.
const BLOCKED_MAX: u32 = 20;

/// Most schedules with missed ticks that are kept.
const LATE_MAX: usize = 20;
/// Ticks of one schedule that a look counts.
const TICKS_MAX: u32 = 100;

/// How much a look reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// What the history needs.
    Figures,
    /// What a snapshot needs.
    Whole,
}

/// The figures of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueFigures {
    pub(super) paused: bool,
    pub(super) depth: Depth,
    pub(super) kinds: u32,
    pub(super) oldest_ready: Option<Duration>,
    /// Whether a live worker that serves it leaves it out of its counts.
    pub(super) is_uncounted: bool,
    /// Kinds with tasks to do, and how many they have.
    pub(super) to_do: BTreeMap<Name, u64>,
}

/// What the last look found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) at: Timestamp,
    pub(super) queues: BTreeMap<Name, QueueFigures>,
    pub(super) workers: Vec<WorkerRecord>,
    pub(super) blocked: Vec<WorkflowRecord>,
    /// Schedules whose ticks have passed without a task, with a sentence.
    pub(super) late: Vec<(Name, String)>,
}

/// Asks the store, and remembers what comes of it.
pub(super) struct Sampler {
    began: (Instant, Timestamp),
    looks: u64,
    ages: Ages,
    pub(super) fleet: Fleet,
    pub(super) tracks: Tracks,
    pub(super) found: Found,
    pub(super) health: StoreHealth,
    pub(super) jobs: BTreeMap<Name, JobAtLimit>,
    /// The last job that was read; the next look goes on after it.
    jobs_after: Option<Name>,
}

impl Sampler {
    pub(super) fn new(at: Timestamp) -> Self {
        Self {
            began: (Instant::now(), at),
            looks: 0,
            ages: Ages::default(),
            fleet: Fleet::default(),
            tracks: Tracks::new(at),
            found: Found::default(),
            health: StoreHealth::default(),
            jobs: BTreeMap::new(),
            jobs_after: None,
        }
    }

    /// How many looks there were.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// The time by the wall clock of the first look and the time that has passed since: it never jumps.
    pub(super) fn now(&self) -> Timestamp {
        self.began.1.after(self.began.0.elapsed())
    }

    /// Whether the history needs another point.
    pub(super) fn is_point_due(&self) -> bool {
        self.tracks.is_due(self.now())
    }

    /// Looks at the store. If it does not answer, the last figures stay.
    pub(super) async fn look(&mut self, store: &SharedStore, reach: Reach) {
        self.looks += 1;
        let began = Instant::now();
        let looked = tokio::time::timeout(LOOK_MAX, self.ask(store, reach)).await;
        let error = match looked {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", LOOK_MAX.as_secs())),
        };
        let answered_in_ms = began.elapsed().as_millis() as u64;
        self.health = StoreHealth { ok: error.is_none(), error, answered_in_ms };
    }

    /// The snapshot of the last look.
    pub(super) fn snapshot(&self, audit: Option<LastAudit>, pause: Duration) -> Snapshot {
        super::compose::snapshot(self, audit, pause)
    }

    /// The history of a queue, or of all together.
    pub(super) fn points(&self, queue: Option<&Name>, from: Option<Timestamp>) -> Vec<SeriesPoint> {
        self.tracks.points(queue, from)
    }

    /// The backlog of each queue over a time until now, in at most about so many points.
    pub(super) fn backlogs(&self, over: Duration, most: u32) -> Backlogs {
        self.tracks.backlogs(self.found.at.before(over), most)
    }

    async fn ask(&mut self, store: &SharedStore, reach: Reach) -> Result<(), Error> {
        let workers = store.workers().await?;
        let lanes = store.lane_records().await?;
        let ready = store.ready_lines().await?;
        self.fleet.note(&workers);
        let queues = self.queues(&lanes, &ready, &workers);
        if reach == Reach::Whole {
            // A queue that is paused before its first task has no lane.
            let paused = store.paused_queues().await?;
            self.found.blocked = store.gates().workflows(true, None, BLOCKED_MAX).await?;
            self.look_at_jobs(store).await?;
            self.found.late = late(store).await?;
            let mut queues = queues;
            for queue in paused {
                queues.entry(queue).or_default().paused = true;
            }
            self.take_in(queues, workers);
        } else {
            self.take_in(queues, workers);
        }
        Ok(())
    }

    fn take_in(&mut self, queues: BTreeMap<Name, QueueFigures>, workers: Vec<WorkerRecord>) {
        let exists = |queue: &Name| queues.contains_key(queue);
        self.fleet.keep(exists);
        self.tracks.keep(exists);
        let before = std::mem::take(&mut self.found);
        self.found = Found { at: self.now(), queues, workers, blocked: before.blocked, late: before.late };
        let marks: Vec<(&Name, Mark)> =
            self.found.queues.iter().map(|(queue, figures)| (queue, self.mark(queue, figures))).collect();
        let total = self.total_mark();
        self.tracks.note(total, marks.into_iter());
    }

    /// The figures of a queue for its history.
    pub(super) fn mark(&self, queue: &Name, figures: &QueueFigures) -> Mark {
        let QueueFigures { depth, oldest_ready, is_uncounted, .. } = *figures;
        Mark { at: self.found.at, depth, done: self.fleet.of(queue), is_uncounted, oldest_ready }
    }

    /// The figures of all queues together.
    pub(super) fn total_mark(&self) -> Mark {
        let mut depth = Depth::default();
        for figures in self.found.queues.values() {
            depth.add(&figures.depth);
        }
        let oldest_ready = self.found.queues.values().filter_map(|figures| figures.oldest_ready).max();
        let (done, is_uncounted) = (self.fleet.total(), self.fleet.has_silent());
        Mark { at: self.found.at, depth, done, is_uncounted, oldest_ready }
    }

    fn queues(
        &mut self,
        lanes: &[LaneRecord],
        ready: &ReadyLines,
        workers: &[WorkerRecord],
    ) -> BTreeMap<Name, QueueFigures> {
        let now = Instant::now();
        self.ages.note(ready.last, now);
        let suspects = self.fleet.suspects(workers);
        let mut queues: BTreeMap<Name, QueueFigures> = BTreeMap::new();
        for lane in lanes {
            let figures = queues.entry(lane.queue.clone()).or_default();
            figures.paused |= lane.paused;
            figures.depth.add(&lane.depth);
            figures.kinds += 1;
            figures.is_uncounted |=
                suspects.iter().any(|suspect| suspect.leaves_out(&lane.queue, &lane.kind));
            let to_do = lane.depth.ready + lane.depth.held;
            if to_do > 0 {
                figures.to_do.insert(lane.kind.clone(), to_do);
            }
        }
        for (_, queue, place) in &ready.heads {
            let age = self.ages.age(*place, now);
            if let Some(figures) = queues.get_mut(queue) {
                figures.oldest_ready = figures.oldest_ready.max(Some(age));
            }
        }
        queues
    }

    /// Reads the next page of jobs, and keeps those that are at their limit while tasks are held.
    async fn look_at_jobs(&mut self, store: &SharedStore) -> Result<()> {
        let read = store.gates().jobs(self.jobs_after.as_ref(), JOBS_PER_LOOK).await?;
        let is_last = (read.len() as u32) < JOBS_PER_LOOK;
        let names: BTreeSet<&Name> = read.iter().map(|job| &job.name).collect();
        let (first, last) = (self.jobs_after.take(), read.last().map(|job| job.name.clone()));
        // A job of this page that was not read is gone.
        let is_in_page = |job: &Name| {
            first.as_ref().is_none_or(|first| job > first)
                && (is_last || last.as_ref().is_some_and(|last| job <= last))
        };
        self.jobs.retain(|job, _| !is_in_page(job) || names.contains(job));
        let now = self.now();
        for job in read {
            match at_limit(&job) {
                Some(concurrency) if self.jobs.len() < JOBS_MAX || self.jobs.contains_key(&job.name) => {
                    let since = self.jobs.get(&job.name).map_or(now, |known| known.since);
                    self.jobs.insert(job.name.clone(), view(job, concurrency, since));
                }
                _ => {
                    self.jobs.remove(&job.name);
                }
            }
        }
        self.jobs_after = if is_last { None } else { last };
        Ok(())
    }
}

/// Schedules whose ticks have passed without a task.
async fn late(store: &SharedStore) -> Result<Vec<(Name, String)>> {
    let rows = store.schedules().list().await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let now = store.schedules().due(1).await?.now;
    let late = rows.into_iter().map(Schedule::from).filter_map(|schedule| {
        let (passed, spec) = (schedule.passed(now, TICKS_MAX)?, schedule.spec.ok()?);
        Some((schedule.name, passed_sentence(&passed, spec.missed)))
    });
    Ok(late.take(LATE_MAX).collect())
}

/// The limit of a job that is at it and keeps tasks back.
fn at_limit(job: &JobRecord) -> Option<u32> {
    let concurrency = job.concurrency?;
    let is_full = job.ready.saturating_add(job.running) >= u64::from(concurrency);
    (job.state == JobState::Active && is_full && job.held > 0).then_some(concurrency)
}

fn view(job: JobRecord, concurrency: u32, since: Timestamp) -> JobAtLimit {
    JobAtLimit { job: job.name, concurrency, running: job.running, ready: job.ready, held: job.held, since }
}
