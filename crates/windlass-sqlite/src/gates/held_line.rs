//! The line before each job: its held tasks, the best first.
//!
//! ```text
//!   table    x  x  x  x  o  o  o  o │ o  o  o  o  o …      x: admitted, but still in the table
//!   memory               o  o  o  o │                      │: the writer has read ahead up to here
//! ```
//!
//! An admitted task leaves the table only when the writer reads further, together with those before it. So a
//! job's turn seldom writes the page of its line; each job has another page. When the store is opened, `mend`
//! removes the tasks that the last process had admitted.

use windlass_core::{LaneId, Name, State, TaskId};

use crate::{
    connection::tx::{Step, Tx, disagree},
    gates::job,
    memory::{Place, Ready, Waiting},
    sql,
};

/// Most tasks that are read ahead in one line: one page write then serves many tasks.
const AHEAD_MAX: usize = 96;
/// Fewest tasks that are read ahead, however many lines there are.
const AHEAD_MIN: usize = 4;
/// Approximate number of tasks that are read ahead in all lines: 2 MiB.
const AHEAD_TOTAL: usize = 131_072;
/// From this length on the tasks read ahead are dropped: many better tasks were added after the read.
const AHEAD_FORGET: usize = 4 * AHEAD_MAX;

/// The rank of suspects that are set aside; no priority has it.
const ASIDE_RANK: i64 = i64::MAX;

/// Adds a newly held task to its line.
pub(crate) fn enter(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: Waiting) -> Step<()> {
    put(tx, job, lane, &task)?;
    tx.memory.rooms.enter(job, lane, task.priority);
    lined_up(tx, job, lane, task)
}

/// A ready task becomes held again.
pub(crate) fn enter_again(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: Waiting) -> Step<()> {
    put(tx, job, lane, &task)?;
    tx.memory.rooms.demote(job, lane, task.id);
    lined_up(tx, job, lane, task)
}

/// Admits a held task: it becomes ready.
pub(crate) fn let_through(tx: &mut Tx<'_>, job: &Name, ready: Ready) -> Step<()> {
    let lane = ready.lane;
    tx.memory.rooms.promote(job, ready);
    if tx.memory.rooms.held_in(job, lane) == 0 {
        // No further read of an empty line follows, so remove its rows now.
        clear(tx, job, lane, (ASIDE_RANK - 1, i64::MAX))?;
        tx.memory.rooms.forget_ahead(job, lane);
    }
    Ok(())
}

/// Removes a held task that ends.
pub(crate) fn leave(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: &Waiting) -> Step<()> {
    let (rank, id) = task.place();
    tx.sql(sql::LEAVE_LINE)?.execute((job.as_str(), lane.0, rank, id))?;
    tx.memory.rooms.leave_line(job, lane, task.id);
    if tx.memory.rooms.held_in(job, lane) == 0 {
        clear(tx, job, lane, (ASIDE_RANK - 1, i64::MAX))?;
        tx.memory.rooms.forget_ahead(job, lane);
    }
    Ok(())
}

/// Sets a ready suspect aside until its group's turn, at the end of the line, which no claim reads.
pub(crate) fn stand_aside(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: &Waiting) -> Step<()> {
    if tx.sql(sql::STAND_ASIDE)?.execute([task.id.raw()])? != 1 {
        return Err(disagree("a ready suspect"));
    }
    tx.sql(sql::LINE_UP)?.execute((job.as_str(), lane.0, ASIDE_RANK, task.id.raw(), task.crashes))?;
    tx.memory.count_move(lane, State::Ready, State::Held, 1);
    tx.memory.count_suspects(lane, -1);
    tx.memory.rooms.leave(job, lane, task.id);
    count_aside(tx, job, lane, 1);
    tx.touched.job(job);
    Ok(())
}

/// Its group's turn has come: the suspect waits for its job like any other task.
pub(crate) fn come_back(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: Waiting) -> Step<()> {
    if tx.sql(sql::COME_BACK)?.execute([task.id.raw()])? != 1 {
        return Err(disagree("a suspect that stands aside"));
    }
    leave_aside(tx, job, lane, task.id)?;
    enter(tx, job, lane, task)?;
    tx.touched.job(job);
    Ok(())
}

/// Removes a suspect from those set aside.
pub(crate) fn leave_aside(tx: &mut Tx<'_>, job: &Name, lane: LaneId, id: TaskId) -> Step<()> {
    tx.sql(sql::LEAVE_LINE)?.execute((job.as_str(), lane.0, ASIDE_RANK, id.raw()))?;
    count_aside(tx, job, lane, -1);
    Ok(())
}

fn count_aside(tx: &mut Tx<'_>, job: &Name, lane: LaneId, by: i64) {
    tx.memory.rooms.count_aside(job, lane, by);
    tx.memory.count_aside(lane, by);
}

/// The first tasks of a line.
pub(crate) fn first(tx: &mut Tx<'_>, job: &Name, lane: LaneId, n: usize) -> Step<Vec<Waiting>> {
    let (held, known) = tx.memory.rooms.line(job, lane);
    let wanted = n.min(held as usize);
    if known.map_or(0, |ahead| ahead.tasks().len()) < wanted {
        read_on(tx, job, lane, wanted)?;
    }
    let (_, ahead) = tx.memory.rooms.line(job, lane);
    Ok(ahead.map_or_else(Vec::new, |ahead| ahead.tasks().iter().take(n).copied().collect()))
}

/// Reads ahead until `wanted` tasks are known, and removes the admitted ones from the table.
fn read_on(tx: &mut Tx<'_>, job: &Name, lane: LaneId, wanted: usize) -> Step<()> {
    let ahead = tx.memory.rooms.line(job, lane).1.cloned().unwrap_or_default();
    let (rank, id) = ahead.end();
    let more = (AHEAD_TOTAL / tx.memory.rooms.len().max(1)).clamp(AHEAD_MIN, AHEAD_MAX);
    let more = more.max(wanted.saturating_sub(ahead.tasks().len()));
    let mut statement = tx.sql(sql::FIND_HELD)?;
    let found = statement.query_map((job.as_str(), lane.0, rank, id, more as i64), |row| {
        Ok(Waiting {
            id: TaskId::from_raw(row.get(1)?),
            priority: i32::try_from(-row.get::<_, i64>(0)?).unwrap_or(i32::MAX),
            crashes: row.get(2)?,
        })
    })?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    if rank > i64::MIN {
        let up_to = ahead.tasks().first().map_or(ahead.end(), |first| (first.place().0, first.place().1 - 1));
        clear(tx, job, lane, up_to)?;
    }
    tx.memory.rooms.read_on(job, lane, &found);
    Ok(())
}

fn put(tx: &Tx<'_>, job: &Name, lane: LaneId, task: &Waiting) -> Step<()> {
    let (rank, id) = task.place();
    tx.sql(sql::LINE_UP)?.execute((job.as_str(), lane.0, rank, id, task.crashes))?;
    Ok(())
}

/// Removes a line from the table up to a (rank, id).
fn clear(tx: &Tx<'_>, job: &Name, lane: LaneId, (rank, id): Place) -> Step<()> {
    tx.sql(sql::CLEAR_LINE)?.execute((job.as_str(), lane.0, rank, id))?;
    Ok(())
}

/// Records a task that the table now has, among those read ahead if it belongs there.
fn lined_up(tx: &mut Tx<'_>, job: &Name, lane: LaneId, task: Waiting) -> Step<()> {
    let Some(ahead) = tx.memory.rooms.line(job, lane).1 else { return Ok(()) };
    if task.place() > ahead.end() {
        return Ok(());
    }
    if ahead.tasks().len() < AHEAD_FORGET {
        tx.memory.rooms.line_up(job, lane, task);
        return Ok(());
    }
    // Without the admitted tasks the table alone says which tasks are held.
    let ahead = ahead.clone();
    clear(tx, job, lane, ahead.end())?;
    for waiting in ahead.tasks().iter().chain([&task]) {
        put(tx, job, lane, waiting)?;
    }
    tx.memory.rooms.forget_ahead(job, lane);
    Ok(())
}

/// Removes the tasks that were admitted before the last close from the lines, before anything is read from
/// them.
pub(crate) fn mend(tx: &mut Tx<'_>) -> Step<()> {
    let mut statement = tx.sql(sql::COUNT_LINES)?;
    let mut rows = statement.query([])?;
    let mut long = Vec::new();
    while let Some(row) = rows.next()? {
        let (job, lane, length) = (job::name(row, 0)?, LaneId(row.get(1)?), row.get::<_, i64>(2)? as u64);
        let held = tx.memory.rooms.held_in(&job, lane);
        if length > held {
            long.push((job, lane, length - held));
        }
    }
    for (job, lane, more) in long {
        tx.sql(sql::MEND_LINE)?.execute((job.as_str(), lane.0, more as i64))?;
    }
    Ok(())
}
