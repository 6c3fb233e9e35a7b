//! The history of each queue in memory: a point every five seconds for an hour, and one a minute for a day.
//!
//! At most [`QUEUES_MAX`] queues have a history of their own. A queue whose figures have not changed for an hour
//! gives its place to a new one.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use windlass_core::{
    Counts, Name, State, Timestamp,
    forecast::{self, Forecast, Point, Rates},
    store::Depth,
};

use super::{Backlogs, RECORD_EVERY};
use crate::api::SeriesPoint;

/// Most queues that have a history. One of a day takes about 200 kB.
pub(super) const QUEUES_MAX: usize = 100;
/// How long the points of every five seconds are kept.
const FINE: usize = 3_600 / 5;
/// How long the points of every minute are kept.
const COARSE: usize = 24 * 60;
/// After so long without a change a queue gives up its history.
const IDLE: Duration = Duration::from_hours(1);
/// The span of the rates that are shown.
const RATES_OVER: Duration = Duration::from_secs(30);
/// The same if the backlog is counted only from time to time.
const ROUGH_RATES_OVER: Duration = Duration::from_mins(2);
/// The states of tasks that are to be done without waiting for a time.
const BACKLOG: [State; 4] = [State::Ready, State::Running, State::Held, State::Waiting];

/// The figures of one queue at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) at: Timestamp,
    pub(super) depth: Depth,
    pub(super) done: Counts,
    /// Whether there may be work that `done` does not hold.
    pub(super) is_uncounted: bool,
    pub(super) oldest_ready: Option<Duration>,
}

/// The same as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    at: Timestamp,
    backlog: u64,
    /// Whether the backlog was counted up to a bound only.
    at_least: bool,
    is_rough: bool,
    /// Whether more may have left than `left` says.
    is_uncounted: bool,
    ready: u64,
    running: u64,
    dead: u64,
    oldest_ready_ms: u64,
    left: u64,
    done: u64,
    failed: u64,
}

impl From<Mark> for Kept {
    fn from(mark: Mark) -> Self {
        let Mark { at, depth, done, is_uncounted, oldest_ready } = mark;
        let any = |states: windlass_core::depth::States| BACKLOG.iter().any(|state| states.contains(*state));
        Self {
            at,
            backlog: backlog(&depth),
            at_least: any(depth.at_least),
            is_rough: any(depth.about),
            is_uncounted,
            ready: depth.ready,
            running: depth.running,
            dead: depth.dead,
            oldest_ready_ms: oldest_ready.unwrap_or_default().as_millis() as u64,
            left: done.left(),
            done: done.done,
            failed: done.failed(),
        }
    }
}

impl Kept {
    /// What came is not counted anywhere: it is what was there, and what has left.
    fn point(self) -> Point {
        let left = self.left.cast_signed();
        Point { at: self.at, backlog: self.backlog, came: left.saturating_add_unsigned(self.backlog), left }
    }

    /// Whether its backlog and its counts are known.
    fn is_known(self) -> bool {
        !self.at_least && !self.is_uncounted
    }

    /// Whether nothing has happened between two points.
    fn is_like(self, other: Self) -> bool {
        Self { at: other.at, oldest_ready_ms: other.oldest_ready_ms, ..self } == other
    }
}

/// Tasks that are to be done without waiting for a time.
pub(super) fn backlog(depth: &Depth) -> u64 {
    BACKLOG.iter().map(|state| depth.count(*state).n).sum()
}

/// How fast a queue moves: tasks each second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Speed {
    pub(super) came: Option<f64>,
    pub(super) left: Option<f64>,
    pub(super) done: Option<f64>,
    pub(super) failed: Option<f64>,
}

/// The history of one queue.
#[derive(Debug)]
struct Track {
    fine: VecDeque<Kept>,
    coarse: VecDeque<Kept>,
    moved_at: Timestamp,
}

impl Track {
    fn new(at: Timestamp) -> Self {
        Self { fine: VecDeque::new(), coarse: VecDeque::new(), moved_at: at }
    }

    fn note(&mut self, point: Kept) {
        if self.fine.back().is_none_or(|last| !last.is_like(point)) {
            self.moved_at = point.at;
        }
        push(&mut self.fine, point, FINE);
        let is_next = |last: &Kept| point.at.since(last.at) >= Duration::from_mins(1);
        if self.coarse.back().is_none_or(is_next) {
            push(&mut self.coarse, point, COARSE);
        }
    }

    /// The points of the last five minutes that are known, back to the first that is not, and the newest figures.
    fn recent(&self, now: Kept) -> Vec<Kept> {
        let from = now.at.before(forecast::SPAN_MAX);
        let known = |point: &&Kept| point.at >= from && point.is_known();
        let mut recent: Vec<Kept> = self.fine.iter().rev().take_while(known).copied().collect();
        recent.reverse();
        if now.is_known() && recent.last().is_none_or(|last| last.at < now.at) {
            recent.push(now);
        }
        recent
    }

    /// The last figure of each stretch of so long, with its time.
    fn backlog(&self, from: Timestamp, every: Duration) -> Vec<(Timestamp, u64)> {
        let stretch = |at: Timestamp| at.as_ms().div_euclid((every.as_millis() as i64).max(1));
        let mut figures: Vec<(Timestamp, u64)> = Vec::new();
        for point in self.fine.iter().filter(|point| point.at >= from) {
            figures.pop_if(|(last, _)| stretch(*last) == stretch(point.at));
            figures.push((point.at, point.backlog));
        }
        figures
    }

    fn points(&self, from: Option<Timestamp>) -> Vec<SeriesPoint> {
        let first_fine = self.fine.front().map(|point| point.at);
        let older = self.coarse.iter().filter(|point| first_fine.is_none_or(|first| point.at < first));
        let mut before: Option<Kept> = None;
        let mut points = Vec::new();
        for point in older.chain(&self.fine) {
            if from.is_none_or(|from| point.at >= from) {
                points.push(shown(*point, before));
            }
            before = Some(*point);
        }
        points
    }
}

fn push(points: &mut VecDeque<Kept>, point: Kept, most: usize) {
    if points.len() >= most {
        points.pop_front();
    }
    points.push_back(point);
}

/// A point with the rates since the one before.
fn shown(point: Kept, before: Option<Kept>) -> SeriesPoint {
    let seconds = before.map_or(0.0, |before| point.at.since(before.at).as_secs_f64());
    let rate = |now: i64, then: i64| now.saturating_sub(then).max(0) as f64 / seconds;
    let before = before.filter(|_| seconds > 0.0);
    let before = before.filter(|before| !point.is_uncounted && !before.is_uncounted);
    let counted =
        |of: fn(Kept) -> u64| before.map(|before| rate(of(point).cast_signed(), of(before).cast_signed()));
    let known = before.filter(|before| point.is_known() && before.is_known());
    SeriesPoint {
        at: point.at,
        backlog: point.backlog,
        at_least: point.at_least,
        ready: point.ready,
        running: point.running,
        dead: point.dead,
        oldest_ready_ms: point.oldest_ready_ms,
        in_per_s: known.map(|before| rate(point.point().came, before.point().came)),
        out_per_s: counted(|point| point.left),
        failed_per_s: counted(|point| point.failed),
    }
}

/// The histories of all queues, and of all together.
#[derive(Debug)]
pub(super) struct Tracks {
    total: Track,
    queues: BTreeMap<Name, Track>,
    noted_at: Option<Timestamp>,
}

impl Tracks {
    pub(super) fn new(at: Timestamp) -> Self {
        Self { total: Track::new(at), queues: BTreeMap::new(), noted_at: None }
    }

    /// Whether it is time for the next point.
    pub(super) fn is_due(&self, at: Timestamp) -> bool {
        // Looks are never exactly on time.
        const EARLY: Duration = Duration::from_millis(500);
        self.noted_at.is_none_or(|noted| at.since(noted) >= RECORD_EVERY.saturating_sub(EARLY))
    }

    /// Adds a point to every history, if it is time.
    pub(super) fn note<'a>(&mut self, total: Mark, queues: impl Iterator<Item = (&'a Name, Mark)>) {
        if !self.is_due(total.at) {
            return;
        }
        self.noted_at = Some(total.at);
        self.total.note(total.into());
        for (queue, mark) in queues {
            if let Some(track) = self.place(queue, mark.at) {
                track.note(mark.into());
            }
        }
    }

    /// Forgets queues that no longer exist.
    pub(super) fn keep(&mut self, exists: impl Fn(&Name) -> bool) {
        self.queues.retain(|queue, _| exists(queue));
    }

    /// The rates and the forecast of a queue, or of all together.
    pub(super) fn outlook(&self, queue: Option<&Name>, mark: Mark) -> (Speed, Forecast) {
        let now = Kept::from(mark);
        let track = match queue {
            None => Some(&self.total),
            Some(queue) => self.queues.get(queue),
        };
        if now.is_uncounted {
            let is_empty = now.backlog == 0 && !now.at_least;
            let forecast = if is_empty { Forecast::Empty } else { Forecast::TooLittleKnown };
            return (Speed::default(), forecast);
        }
        let recent = track.map_or_else(|| vec![now], |track| track.recent(now));
        let series: Vec<Point> = recent.iter().map(|point| point.point()).collect();
        let forecast = if now.at_least { Forecast::TooLittleKnown } else { forecast::forecast(&series) };
        (speed(&recent, &series), forecast)
    }

    /// The points of a queue, or of all together.
    pub(super) fn points(&self, queue: Option<&Name>, from: Option<Timestamp>) -> Vec<SeriesPoint> {
        match queue {
            None => self.total.points(from),
            Some(queue) => self.queues.get(queue).map(|track| track.points(from)).unwrap_or_default(),
        }
    }

    /// The backlog of each queue from this time on, in at most about so many points.
    pub(super) fn backlogs(&self, from: Timestamp, most: u32) -> Backlogs {
        let first = self.total.fine.front().map_or(from, |point| point.at.max(from));
        let covered = self.noted_at.map_or(Duration::ZERO, |last| last.since(first));
        let every = covered / most.max(1);
        self.queues.iter().map(|(queue, track)| (queue.clone(), track.backlog(from, every))).collect()
    }

    fn place(&mut self, queue: &Name, at: Timestamp) -> Option<&mut Track> {
        if !self.queues.contains_key(queue) {
            if self.queues.len() >= QUEUES_MAX {
                let idle = self.queues.iter().find(|(_, track)| at.since(track.moved_at) >= IDLE);
                let idle = idle.map(|(queue, _)| queue.clone())?;
                self.queues.remove(&idle);
            }
            self.queues.insert(queue.clone(), Track::new(at));
        }
        self.queues.get_mut(queue)
    }
}

fn speed(recent: &[Kept], series: &[Point]) -> Speed {
    let is_rough = recent.iter().any(|point| point.is_rough);
    let span = if is_rough { ROUGH_RATES_OVER } else { RATES_OVER };
    let count = |of: fn(&Kept) -> u64| {
        let left = |point: &Kept| Point { left: of(point).cast_signed(), ..point.point() };
        forecast::rates(&recent.iter().map(left).collect::<Vec<_>>(), span).map(|rates| rates.left_per_s)
    };
    let Some(Rates { came_per_s, left_per_s }) = forecast::rates(series, span) else {
        return Speed::default();
    };
    Speed {
        came: Some(came_per_s),
        left: Some(left_per_s),
        done: count(|point| point.done),
        failed: count(|point| point.failed),
    }
}

#[cfg(test)]
mod tests;
