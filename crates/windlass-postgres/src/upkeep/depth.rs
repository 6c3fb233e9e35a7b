//! How many tasks of each lane are in each state. No task is counted when it changes. A bounded look tells
//! small numbers exactly. The leader counts large ones from time to time: the longer a count takes, the less
//! often.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Row;
use windlass_core::{
    Lane, Result, State,
    store::{Depth, LaneRecord, READY_LANES_MAX},
    usage::ReadyLines,
};

use crate::{
    connection::{
        options::Clock,
        repeat::repeat,
        sync::{Lock, Pause},
    },
    operate,
    shared::Shared,
    sql,
    upkeep::leader::Term,
};

/// The most tasks of a state that are counted for a caller.
const LOOK_MAX: i64 = 10_000;
/// The most tasks of a state that the leader counts.
const COUNT_MAX: i64 = 1_000_000;
/// How long the server counts for a caller, and for the leader. A snapshot that a session holds keeps dead
/// rows, and a count reads all of them: it must not take the server's time from the tasks. After a count that
/// took too long, both wait before they count again.
const LOOK_TIME_MAX: Duration = Duration::from_millis(250);
const COUNT_TIME_MAX: Duration = Duration::from_secs(2);
/// The shortest time between two counts of the leader.
const EVERY: Duration = Duration::from_secs(10);
/// Counting takes at most this share of the time: one part in so many.
const SHARE: u32 = 50;

/// When the leader counts next, what it wrote last, and until when callers do not count.
pub(crate) struct Pace {
    counts: Pause,
    /// The last count, with the term that it was written under.
    last: Lock<Option<(i64, Figures)>>,
    looks: Pause,
}

impl Pace {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { counts: Pause::new(clock), last: Lock::default(), looks: Pause::new(clock) }
    }

    /// Notes a count; answers whether readers of the figures have not seen it yet.
    fn is_news(&self, term: i64, counted: &Figures) -> bool {
        let counted = Some((term, counted.clone()));
        let mut last = self.last.lock();
        let is_news = *last != counted;
        *last = counted;
        is_news
    }
}

type Figures = HashMap<(i32, i16), i64>;

fn figures(rows: &[Row]) -> Figures {
    rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect()
}

/// The leader's count for all readers, if it is time and there is a large number to count.
pub(crate) async fn count(shared: &Shared, term: Term) -> Result<()> {
    let pace = &shared.leadership.depths;
    if !pace.counts.is_over() {
        return Ok(());
    }
    let started = Instant::now();
    let mut session = shared.duties.session().await?;
    let counted = session.query_within(COUNT_TIME_MAX, &sql::DEPTH_NOW, &[&COUNT_MAX]).await?;
    drop(session);
    pace.counts.begin(EVERY.max(started.elapsed() * SHARE));
    // After a count that took too long the last figures stay.
    let Some(counted) = counted.as_deref().map(figures) else { return Ok(()) };
    if !pace.is_news(term.number, &counted) {
        return Ok(());
    }
    let lanes: Vec<i32> = counted.keys().map(|(lane, _)| *lane).collect();
    let states: Vec<i16> = counted.keys().map(|(_, state)| *state).collect();
    let numbers: Vec<i64> = counted.values().copied().collect();
    repeat(|| async { shared.duties.query(&sql::DEPTH_PUT, &[&lanes, &states, &numbers]).await }).await?;
    Ok(())
}

/// Every lane in use with its figures: exact where they are small, the leader's where they are not.
pub(crate) async fn lane_records(shared: &Shared) -> Result<Vec<LaneRecord>> {
    let paused = operate::paused(shared).await?;
    let mut session = shared.pool.session().await?;
    shared.lanes.load(&mut session).await?;
    let bound = LOOK_MAX + 1;
    let pace = &shared.leadership.depths;
    let mut seen = None;
    if pace.looks.is_over() {
        seen = session.query_within(LOOK_TIME_MAX, &sql::DEPTH_NOW, &[&bound]).await?;
        if seen.is_none() {
            // Callers that repeated it would together take all of the server's time.
            pace.looks.begin(LOOK_TIME_MAX * SHARE);
        }
    }
    let seen = seen.as_deref().map(figures);
    // States with more tasks than a look counts.
    let mut large: HashMap<i16, i64> = HashMap::new();
    for ((_, state), n) in seen.iter().flatten() {
        *large.entry(*state).or_default() += n;
    }
    large.retain(|_, n| *n > LOOK_MAX);
    let kept = if seen.is_some() && large.is_empty() {
        Figures::new()
    } else {
        figures(&session.query(&sql::DEPTH_KEPT, &[]).await?)
    };
    let record = |lane: &Arc<Lane>| {
        let mut depth = Depth::default();
        for state in State::ALL {
            let (lane, state_code) = (lane.id.0 as i32, state.code() as i16);
            let n = |figures: &Figures| figures.get(&(lane, state_code)).copied().unwrap_or(0);
            match &seen {
                Some(seen) if large.contains_key(&state_code) => {
                    note_large(&mut depth, state, n(seen), n(&kept));
                }
                Some(seen) => depth.change(state, n(seen)),
                // The leader's figures are older, but they are all there is.
                None => {
                    depth.change(state, n(&kept));
                    if n(&kept) > 0 {
                        depth.about.insert(state);
                    }
                }
            }
        }
        LaneRecord {
            queue: lane.queue.clone(),
            kind: lane.kind.clone(),
            paused: paused.contains(&lane.queue),
            depth,
        }
    };
    Ok(shared.lanes.in_use().iter().map(record).collect())
}

/// Notes a figure of a state that has more tasks than a look counts: the leader's last count, if that is
/// larger.
fn note_large(depth: &mut Depth, state: State, look: i64, kept: i64) {
    let look = look.min(LOOK_MAX);
    depth.change(state, look.max(kept));
    if kept > look && kept < COUNT_MAX {
        depth.about.insert(state);
    } else {
        depth.at_least.insert(state);
    }
}

/// Where the ready lines begin.
pub(crate) async fn ready_lines(shared: &Shared) -> Result<ReadyLines> {
    let rows = shared.pool.query(&sql::READY_LINES, &[&(READY_LANES_MAX as i64)]).await?;
    let head = |row: &Row| {
        let (lane, place) = (row.get::<_, Option<i32>>(1)?, row.get::<_, Option<i64>>(2)?);
        let lane = shared.lanes.get(lane)?;
        Some((lane.id, lane.queue.clone(), place))
    };
    Ok(ReadyLines {
        last: rows.first().map_or(0, |row| row.get(0)),
        heads: rows.iter().filter_map(head).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_a_look_is_at_least_or_about() {
        for (look, kept, shown) in [
            (LOOK_MAX + 1, 0, "10,000+"),
            (LOOK_MAX + 1, 45_120, "~45,120"),
            (LOOK_MAX + 1, COUNT_MAX, "1,000,000+"),
            (3, 2, "3+"),
            (0, 0, "0+"),
        ] {
            let mut depth = Depth::default();
            note_large(&mut depth, State::Ready, look, kept);
            assert_eq!(depth.count(State::Ready).to_string(), shown, "{look} {kept}");
        }
    }
}
