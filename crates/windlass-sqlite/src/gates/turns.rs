//! A job's turn: what `windlass_core::gate` decides, applied to its rows.

use std::sync::Arc;

use windlass_core::{
    JobState, LaneId, Name, State, TaskId,
    crash::is_suspect,
    gate::{self, JobView},
};

use crate::{
    connection::tx::{Step, Tx, disagree},
    gates::{
        admit::{Budget, Progress},
        held_line,
        job::{self, Job},
    },
    memory::{Ready, Room, Waiting},
    operate, sql,
};

/// Tasks that one statement admits: the pairs of parameters of `admit_many.sql`.
const ADMIT_PER_STATEMENT: usize = 16;
/// Below so many, one statement per task is cheaper than one with mostly empty parameters.
const ADMIT_TOGETHER_MIN: usize = 4;

/// Gives a job its turn. A missing job is created if it has tasks.
pub(crate) fn give_turn(tx: &mut Tx<'_>, name: &Name, budget: &mut Budget) -> Step<Progress> {
    let found = job::recall(tx, name)?;
    let is_new = found.is_none();
    if is_new && !job::has_tasks(tx, name)? {
        return Ok(Progress::Over);
    }
    let before = found.unwrap_or_else(|| Arc::new(Job::new(tx, name)));
    let mut job = Job::clone(&before);
    job.again_at = None;
    let progress = match job.state {
        JobState::Active | JobState::Paused => admit(tx, &mut job, budget)?,
        JobState::Cancelled => cancel_unstarted(tx, &job, TaskId::from_raw(i64::MAX), budget)?,
        JobState::Removing => match remove_rest(tx, &job, budget)? {
            Removal::Forgotten => {
                tx.memory.rooms.set_again(name, before.again_at, None);
                tx.memory.rooms.set_delayed(name, false);
                tx.memory.rooms.set_row(name, None);
                // Tasks that came meanwhile belong to a new job of that name.
                return give_turn(tx, name, budget);
            }
            Removal::GoesOn(progress) => progress,
        },
    };
    if is_new || job != *before {
        job.save(tx, before.again_at)?;
    }
    Ok(progress)
}

/// Records the start of a task that was claimed since the last turn; the delay counts from now.
fn notice_start(tx: &mut Tx<'_>, job: &mut Job) {
    let is_unnoticed = tx.memory.rooms.get(&job.name).is_some_and(|room| room.unnoticed > 0);
    if job.delay.is_some() && is_unnoticed {
        job.last_start = Some(tx.now);
        tx.memory.rooms.notice(&job.name);
    }
}

/// Admits held tasks, or takes ready ones back.
fn admit(tx: &mut Tx<'_>, job: &mut Job, budget: &mut Budget) -> Step<Progress> {
    notice_start(tx, job);
    if take_from_dead_lanes(tx, &job.name, budget)? == Progress::More {
        return Ok(Progress::More);
    }
    let window = tx.memory.window();
    let (ready, running) = taken(tx, &job.name);
    let turn = gate::turn(
        &JobView {
            state: job.state,
            concurrency: job.concurrency,
            delay: job.delay,
            last_start: job.last_start,
            ready,
            running,
        },
        window,
        tx.now,
    );
    let (demote_now, promote_now) = (budget.moves(turn.demote), budget.moves(turn.promote));
    for ready in least_ready(tx, &job.name, demote_now) {
        demote(tx, &job.name, &ready)?;
        budget.spend_move();
    }
    for (lane, task) in best_held(tx, &job.name, promote_now)? {
        promote(tx, &job.name, lane, &task)?;
        budget.spend_move();
    }
    let is_cut = demote_now < turn.demote as usize
        || promote_now < turn.promote as usize && live_held(tx, &job.name) > 0;
    if job.state == JobState::Active {
        change_places(tx, &job.name)?;
    }
    job.again_at = turn.again_at;
    mark(tx, job, window);
    Ok(if is_cut { Progress::More } else { Progress::Over })
}

/// Ready and running tasks of a job.
fn taken(tx: &Tx<'_>, name: &Name) -> (u32, u32) {
    tx.memory.rooms.get(name).map_or((0, 0), |room| (room.ready(), room.running))
}

/// Held tasks of a job in lanes that have a worker.
fn live_held(tx: &Tx<'_>, name: &Name) -> u64 {
    let Some(room) = tx.memory.rooms.get(name) else { return 0 };
    room.shares.iter().filter(|share| tx.memory.is_live(share.lane)).map(|share| share.held).sum()
}

/// Records whether the job is above its limit, and whether it has more tasks than room.
fn mark(tx: &mut Tx<'_>, job: &mut Job, window: u32) {
    let (ready, running) = taken(tx, &job.name);
    let limit = job.concurrency.unwrap_or(window);
    let taken = ready.saturating_add(running);
    // Only a change of the limit sets this mark; here it is cleared.
    job.over_limit &= job.concurrency.is_some() && taken > limit;
    let at_limit = job.state == JobState::Active
        && job.concurrency.is_some()
        && taken >= limit
        && live_held(tx, &job.name) > 0;
    if job.at_limit != at_limit {
        job.at_limit = at_limit;
        tx.effects.limits.push((job.name.clone(), limit, at_limit));
    }
}

/// Takes ready tasks back from lanes without a worker, so that they free their room.
fn take_from_dead_lanes(tx: &mut Tx<'_>, name: &Name, budget: &mut Budget) -> Step<Progress> {
    let Some(room) = tx.memory.rooms.get(name) else { return Ok(Progress::Over) };
    let dead: Vec<Ready> =
        room.each_ready().filter(|ready| !tx.memory.is_live(ready.lane)).copied().collect();
    let now = budget.moves(dead.len() as u32);
    for ready in dead.iter().take(now) {
        demote(tx, name, ready)?;
        budget.spend_move();
    }
    Ok(if now < dead.len() { Progress::More } else { Progress::Over })
}

/// The first held tasks: by priority, then id, of live lanes only.
fn best_held(tx: &mut Tx<'_>, name: &Name, n: usize) -> Step<Vec<(LaneId, Waiting)>> {
    let Some(room) = tx.memory.rooms.get(name).filter(|_| n > 0) else { return Ok(Vec::new()) };
    let lanes = room.shares.iter().filter(|share| share.held > 0 && tx.memory.is_live(share.lane));
    let lanes: Vec<LaneId> = lanes.map(|share| share.lane).collect();
    let mut best = Vec::new();
    for lane in &lanes {
        best.extend(held_line::first(tx, name, *lane, n)?.into_iter().map(|task| (*lane, task)));
    }
    if lanes.len() > 1 {
        best.sort_by_key(|(_, task)| task.place());
        best.truncate(n);
    }
    Ok(best)
}

/// The ready tasks that are taken back first: the lowest priority, and the latest entry among equals.
fn least_ready(tx: &Tx<'_>, name: &Name, n: usize) -> Vec<Ready> {
    let Some(room) = tx.memory.rooms.get(name).filter(|_| n > 0) else { return Vec::new() };
    let key = |ready: &Ready| (ready.task.priority, std::cmp::Reverse(ready.seq));
    let mut least: Vec<Ready> = room.each_ready().copied().collect();
    if n < least.len() {
        least.select_nth_unstable_by_key(n, key);
        least.truncate(n);
    }
    least.sort_unstable_by_key(key);
    least
}

fn promote(tx: &mut Tx<'_>, name: &Name, lane: LaneId, task: &Waiting) -> Step<()> {
    let ready_seq = tx.memory.next_ready_seq();
    tx.touched.admitted.push((task.id.raw(), ready_seq));
    if tx.touched.admitted.len() == ADMIT_PER_STATEMENT {
        write_admitted(tx)?;
    }
    tx.memory.count_move(lane, State::Held, State::Ready, 1);
    if is_suspect(task.crashes) {
        tx.memory.count_suspects(lane, 1);
    }
    held_line::let_through(tx, name, Ready { lane, task: *task, seq: ready_seq })?;
    tx.touched.lanes_ready.insert(lane);
    tx.effects.ready = true;
    Ok(())
}

/// Writes the rows of admitted tasks. Must run before other code reads or changes those rows.
pub(crate) fn write_admitted(tx: &mut Tx<'_>) -> Step<()> {
    if tx.touched.admitted.is_empty() {
        return Ok(());
    }
    let admitted = std::mem::take(&mut tx.touched.admitted);
    let changed = if admitted.len() < ADMIT_TOGETHER_MIN {
        let mut statement = tx.sql(sql::ADMIT)?;
        let changed = admitted.iter().map(|(id, ready_seq)| statement.execute((ready_seq, id)));
        changed.sum::<rusqlite::Result<usize>>()?
    } else {
        let mut statement = tx.sql(sql::ADMIT_MANY)?;
        for place in 0..ADMIT_PER_STATEMENT {
            let pair = admitted.get(place);
            statement.raw_bind_parameter(2 * place + 1, pair.map(|(id, _)| *id))?;
            statement.raw_bind_parameter(2 * place + 2, pair.map(|(_, ready_seq)| *ready_seq))?;
        }
        statement.raw_execute()?
    };
    if changed != admitted.len() {
        return Err(disagree("a held task"));
    }
    Ok(())
}

fn demote(tx: &mut Tx<'_>, name: &Name, ready: &Ready) -> Step<()> {
    write_admitted(tx)?;
    let Ready { lane, task, .. } = *ready;
    if tx.sql(sql::DEMOTE)?.execute([task.id.raw()])? != 1 {
        return Err(disagree("a ready task"));
    }
    tx.memory.count_move(lane, State::Ready, State::Held, 1);
    if is_suspect(task.crashes) {
        tx.memory.count_suspects(lane, -1);
    }
    held_line::enter_again(tx, name, lane, task)
}

/// Held tasks replace ready ones that they outrank.
fn change_places(tx: &mut Tx<'_>, name: &Name) -> Step<()> {
    let is_possible = |tx: &Tx<'_>| {
        tx.memory.rooms.get(name).is_some_and(|room| room.is_mixed() && room.ready() > 0 && room.held() > 0)
    };
    while is_possible(tx) {
        let (best, least) = (best_held(tx, name, 1)?, least_ready(tx, name, 1));
        match (best.as_slice(), least.as_slice()) {
            ([(lane, best)], [least]) if best.priority > least.task.priority => {
                demote(tx, name, least)?;
                promote(tx, name, *lane, best)?;
            }
            _ => break,
        }
    }
    Ok(())
}

/// Cancels tasks of the job up to an id that do not run and have not ended.
pub(crate) fn cancel_unstarted(
    tx: &mut Tx<'_>,
    job: &Job,
    up_to: TaskId,
    budget: &mut Budget,
) -> Step<Progress> {
    write_admitted(tx)?;
    let wanted = budget.cancels();
    let ready = tx.memory.rooms.get(&job.name).into_iter().flat_map(Room::each_ready);
    let ready = ready.map(|ready| ready.task.id).filter(|id| *id <= up_to);
    let mut ids: Vec<TaskId> = ready.take(wanted).collect();
    for sql in [sql::UNSTARTED_HELD, sql::UNSTARTED_LATER] {
        let mut statement = tx.sql(sql)?;
        let found = statement
            .query_map((job.name.as_str(), up_to.raw(), (wanted - ids.len()) as i64), |row| {
                row.get(0).map(TaskId::from_raw)
            })?;
        ids.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    let reason = job.reason();
    for id in &ids {
        operate::end_unstarted(tx, *id, &reason)?;
        budget.spend_cancel();
    }
    if job.state == JobState::Removing {
        tx.touched.removed += ids.len() as u64;
    }
    Ok(if ids.len() == wanted { Progress::More } else { Progress::Over })
}

/// The progress of a job's removal.
enum Removal {
    Forgotten,
    GoesOn(Progress),
}

/// Continues the removal of a job; deletes it when the last of its old tasks has ended.
fn remove_rest(tx: &mut Tx<'_>, job: &Job, budget: &mut Budget) -> Step<Removal> {
    let up_to = job.gone_before.unwrap_or(tx.memory.last_id);
    let progress = cancel_unstarted(tx, job, up_to, budget)?;
    if progress == Progress::More || tx.memory.running_of(&job.name).any(|lease| lease.id <= up_to) {
        return Ok(Removal::GoesOn(progress));
    }
    tx.sql(sql::DELETE_JOB)?.execute([job.name.as_str()])?;
    Ok(Removal::Forgotten)
}
