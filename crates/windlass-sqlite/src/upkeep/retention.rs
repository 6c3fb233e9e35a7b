//! Duties: due tasks, and retention in bounded steps.

use std::time::{Duration, Instant};

use windlass_core::{LaneId, Name, State, TaskId, Timestamp, source::DutyReport, store::Retention};

use crate::{
    connection::{
        options::History,
        tx::{Step, Tx, disagree},
    },
    enqueue::{ROW_BYTES, keyed},
    gates::{admit, held_line, job::optional_name},
    memory::Waiting,
    sql,
    upkeep::lanes,
};

/// Rows that retention reads between two looks at the clock.
pub(super) const CHUNK_ROWS: usize = 500;
/// How long one step of retention may hold the writer.
const STEP_MAX: Duration = Duration::from_millis(25);
/// Shortest time between two passes of retention from the start.
const PASS_PAUSE: Duration = Duration::from_secs(1);
/// How long an ended registration and its receipts are kept.
const TOMBSTONE_AGE: Duration = Duration::from_hours(24);
/// How long an ended task is kept at least if a caller awaits it or if it left an output.
const AWAITED_AGE: Duration = Duration::from_mins(10);
/// How soon an expired key is checked again if its task is still kept.
const KEY_AGAIN: Duration = Duration::from_hours(1);
/// Free pages of the file that one step returns to the system.
const VACUUM_PAGES: u32 = 256;
/// Free pages that stay in the file for the next writes: 4 MiB.
const FREE_PAGES_LEFT: u32 = 1024;

/// A due task.
struct Due {
    id: TaskId,
    lane: LaneId,
    priority: i32,
    job: Option<Name>,
    crashes: u32,
}

/// Moves due tasks on: they become ready, or held if they have a job.
pub(crate) fn promote_due(tx: &mut Tx<'_>, limit: u32) -> Step<DutyReport> {
    let due = if tx.memory.scheduled() == 0 { Vec::new() } else { find_due(tx, limit)? };
    let mut report = DutyReport { more: due.len() >= limit as usize && limit > 0, ..DutyReport::default() };
    for task in due {
        let state = if task.job.is_some() { State::Held } else { State::Ready };
        let ready_seq = (state == State::Ready).then(|| tx.memory.next_ready_seq());
        if tx.sql(sql::PROMOTE)?.execute((ready_seq, task.id.raw(), state.code()))? != 1 {
            return Err(disagree("a scheduled task"));
        }
        tx.memory.count_move(task.lane, State::Scheduled, state, 1);
        report.moved += 1;
        if let Some(job) = &task.job {
            let waiting = Waiting { id: task.id, priority: task.priority, crashes: task.crashes };
            held_line::enter(tx, job, task.lane, waiting)?;
            tx.touched.job(job);
        } else {
            tx.effects.ready = true;
            report.lanes_ready.push(task.lane);
        }
    }
    admit::give_turns(tx)?;
    report.lanes_ready.extend(&tx.touched.lanes_ready);
    report.lanes_ready.sort_unstable();
    report.lanes_ready.dedup();
    report.next_due = tx.next_due()?;
    Ok(report)
}

fn find_due(tx: &Tx<'_>, limit: u32) -> Step<Vec<Due>> {
    let mut statement = tx.sql(sql::FIND_DUE)?;
    let due = statement.query_map((tx.now.as_ms(), limit), |row| {
        Ok(Due {
            id: TaskId::from_raw(row.get(0)?),
            lane: LaneId(row.get(1)?),
            priority: row.get(2)?,
            job: optional_name(row, 3)?,
            crashes: row.get(4)?,
        })
    })?;
    Ok(due.collect::<rusqlite::Result<_>>()?)
}

/// The position of retention by age between its steps; losing it costs only time.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Tasks up to this id are removed, except those that `left_behind` covers.
    after: i64,
    /// The earliest end of a task that is kept at or below `after`.
    left_behind: Option<Timestamp>,
    /// When the last pass started again from the beginning.
    restarted: Option<Duration>,
    /// The duty that runs first in the next step, so that a long one does not delay the others.
    first_duty: usize,
    /// When the lanes were last looked at.
    pub(super) lanes_seen: Option<Duration>,
}

impl Cursor {
    /// Records a kept task. A task that was enqueued early and ended late lies behind the cursor.
    pub(crate) fn kept(&mut self, id: TaskId, ended_at: Timestamp) {
        if id.raw() <= self.after {
            self.left_behind = Some(self.left_behind.map_or(ended_at, |first| first.min(ended_at)));
        }
    }

    /// Records that a task which was kept because it blocked its workflow blocks it no longer. Only operators
    /// do that, so the next pass need not wait.
    pub(crate) fn unblocked(&mut self, id: TaskId) {
        if id.raw() <= self.after {
            (self.left_behind, self.restarted) = (Some(Timestamp::from_ms(i64::MIN)), None);
        }
    }
}

/// One step of retention; `more` in the answer asks for another at once.
pub(crate) fn retain(tx: &mut Tx<'_>, retention: &Retention) -> Step<DutyReport> {
    let started = Instant::now();
    let duties: [Duty; 8] = [
        by_age,
        by_size,
        dead_tasks,
        expired_keys,
        tombstones,
        old_sessions,
        lanes::retire_empty,
        free_pages,
    ];
    let mut report = DutyReport::default();
    let turns = duties.iter().enumerate().cycle().skip(tx.cursor.first_duty).take(duties.len());
    for (place, duty) in turns {
        loop {
            if started.elapsed() >= STEP_MAX {
                tx.cursor.first_duty = (place + 1) % duties.len();
                report.more = true;
                return Ok(report);
            }
            let (moved, more) = duty(tx, retention)?;
            report.moved += moved;
            if !more {
                break;
            }
        }
    }
    tx.effects.tidy = true;
    Ok(report)
}

/// Rows removed, and whether there are more.
pub(super) type Swept = (u64, bool);
type Duty = fn(&mut Tx<'_>, &Retention) -> Step<Swept>;

fn by_age(tx: &mut Tx<'_>, retention: &Retention) -> Step<Swept> {
    let age = match tx.options.history {
        History::Kept => retention.history_age,
        History::Off => AWAITED_AGE,
    };
    let cutoff = tx.now.before(age);
    // A task never ends before it is enqueued, so every task that ended before the cutoff has an id below
    // this one.
    let below = TaskId::first_at(Timestamp::from_ms(cutoff.as_ms().saturating_add(1))).raw();
    let rows = old_history(tx, tx.cursor.after, below)?;
    let Some(last) = rows.last() else { return Ok((0, begin_again(tx, cutoff))) };
    let old = rows.iter().filter(|row| row.ended_at <= cutoff && !row.blocks);
    let (moved, bytes) = old.fold((0, 0), |(rows, bytes), row| (rows + 1, bytes + row.bytes));
    if moved > 0 {
        delete_range(tx, tx.cursor.after, last.id, cutoff, moved, bytes)?;
    }
    tx.cursor.after = last.id;
    // One that blocks a workflow is recorded when it no longer does.
    for row in rows.iter().filter(|row| row.ended_at > cutoff && !row.blocks) {
        tx.cursor.kept(TaskId::from_raw(row.id), row.ended_at);
    }
    Ok((moved, true))
}

/// A pass is over. If a task that was left behind is now old enough, the next pass starts from the beginning.
/// At most one pass starts every [`PASS_PAUSE`]: otherwise a steady stream of late ends would keep retention
/// running for ever.
fn begin_again(tx: &mut Tx<'_>, cutoff: Timestamp) -> bool {
    let is_due = tx.cursor.left_behind.is_some_and(|ended_at| ended_at <= cutoff)
        && tx.cursor.restarted.is_none_or(|at| tx.mono.saturating_sub(at) >= PASS_PAUSE);
    if is_due {
        let Cursor { first_duty, lanes_seen, .. } = *tx.cursor;
        *tx.cursor = Cursor { restarted: Some(tx.mono), first_duty, lanes_seen, ..Cursor::default() };
    }
    is_due
}

fn by_size(tx: &mut Tx<'_>, retention: &Retention) -> Step<Swept> {
    let surplus = tx.memory.history().bytes.saturating_sub(retention.history_max_bytes);
    if surplus == 0 {
        return Ok((0, false));
    }
    let rows = old_history(tx, i64::MIN, i64::MAX)?;
    let (mut moved, mut bytes, mut last) = (0, 0, i64::MIN);
    for row in &rows {
        if bytes >= surplus {
            break;
        }
        if !row.blocks {
            moved += 1;
            bytes += row.bytes;
        }
        last = row.id;
    }
    if moved > 0 {
        delete_range(tx, i64::MIN, last, Timestamp::from_ms(i64::MAX), moved, bytes)?;
    }
    // Stored figures that are too high would make this run for ever.
    Ok((moved, moved > 0 && bytes < surplus))
}

struct OldRow {
    id: i64,
    ended_at: Timestamp,
    bytes: u64,
    /// Whether a workflow is blocked by it until an operator decides.
    blocks: bool,
}

fn old_history(tx: &Tx<'_>, after: i64, below: i64) -> Step<Vec<OldRow>> {
    let mut statement = tx.sql(sql::OLD_HISTORY)?;
    let rows = statement.query_map((after, below, CHUNK_ROWS as i64), |row| {
        Ok(OldRow {
            id: row.get(0)?,
            ended_at: Timestamp::from_ms(row.get(1)?),
            bytes: row.get::<_, i64>(2)? as u64 + ROW_BYTES,
            blocks: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn delete_range(
    tx: &mut Tx<'_>,
    after: i64,
    upto: i64,
    cutoff: Timestamp,
    rows: u64,
    bytes: u64,
) -> Step<()> {
    let removed = tx.sql(sql::DELETE_HISTORY_RANGE)?.execute((after, upto, cutoff.as_ms()))?;
    if removed as u64 != rows {
        return Err(disagree("kept tasks"));
    }
    tx.memory.count_history(-(rows as i64), -(bytes as i64));
    tx.effects.figures = true;
    Ok(())
}

fn dead_tasks(tx: &mut Tx<'_>, retention: &Retention) -> Step<Swept> {
    let cutoff = tx.now.before(retention.dead_age);
    let dead: Vec<(TaskId, LaneId)> = tx
        .sql(sql::OLD_DEAD)?
        .query_map((cutoff.as_ms(), CHUNK_ROWS as i64), |row| {
            Ok((TaskId::from_raw(row.get(0)?), LaneId(row.get(1)?)))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (id, lane) in &dead {
        remove_dead(tx, *id, *lane)?;
    }
    Ok((dead.len() as u64, dead.len() == CHUNK_ROWS))
}

/// Removes one dead task, and starts the expiry time of its key.
pub(crate) fn remove_dead(tx: &mut Tx<'_>, id: TaskId, lane: LaneId) -> Step<()> {
    keyed::expire(tx, id)?;
    if tx.sql(sql::DELETE_DEAD)?.execute([id.raw()])? != 1 {
        return Err(disagree("a dead task"));
    }
    tx.memory.count(lane, State::Dead, -1);
    tx.effects.figures = true;
    Ok(())
}

fn expired_keys(tx: &mut Tx<'_>, _: &Retention) -> Step<Swept> {
    let expired: Vec<(String, String, bool)> = tx
        .sql(sql::OLD_KEYS)?
        .query_map((tx.now.as_ms(), CHUNK_ROWS as i64), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (queue, key, is_kept) in &expired {
        if *is_kept {
            let again_at = tx.now.after(KEY_AGAIN).as_ms();
            tx.sql(sql::PROLONG_KEY)?.execute((queue, key, again_at))?;
        } else {
            tx.sql(sql::DELETE_KEY)?.execute((queue, key))?;
        }
    }
    Ok((0, expired.len() == CHUNK_ROWS))
}

fn tombstones(tx: &mut Tx<'_>, _: &Retention) -> Step<Swept> {
    let cutoff = tx.now.before(TOMBSTONE_AGE);
    let old: Vec<i64> = tx
        .sql(sql::OLD_WORKERS)?
        .query_map((cutoff.as_ms(), CHUNK_ROWS as i64), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for worker in &old {
        tx.sql(sql::DELETE_RECEIPTS)?.execute([worker])?;
        tx.sql(sql::DELETE_WORKER)?.execute([worker])?;
    }
    Ok((0, old.len() == CHUNK_ROWS))
}

fn old_sessions(tx: &mut Tx<'_>, _: &Retention) -> Step<Swept> {
    let removed = tx.sql(sql::OLD_SESSIONS)?.execute((tx.now.as_ms(), CHUNK_ROWS as i64))?;
    Ok((0, removed == CHUNK_ROWS))
}

/// Returns free pages at the end of the file to the system, a few at a time.
fn free_pages(tx: &mut Tx<'_>, _: &Retention) -> Step<Swept> {
    let free: u32 = tx.conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    if free <= FREE_PAGES_LEFT {
        return Ok((0, false));
    }
    let pages = VACUUM_PAGES.min(free - FREE_PAGES_LEFT);
    let mut statement = tx.conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    // The pragma gives back one page per step.
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok((0, free - pages > FREE_PAGES_LEFT))
}
