//! Settle: the ends of attempts, all in one durable commit, once per batch number.

pub(crate) mod ends;
pub(crate) mod later;

use rusqlite::{CachedStatement, OptionalExtension, types::Null};
use serde::{Deserialize, Serialize};
use windlass_core::{Error, LaneId, SettleBatch, SettleItem, Settled, Settlement, State, TaskId, WorkerId};

use crate::{
    connection::tx::{Step, Tx, disagree},
    enqueue::keyed,
    gates::admit,
    settle::{
        ends::{Ending, count_kept, must_keep},
        later::Later,
    },
    sql,
};

/// Tasks that one statement ends: the number of parameters in `keep_done.sql` and `delete_done.sql`.
const DONE_PER_STATEMENT: usize = 64;
/// Below so many, one statement per task is cheaper than one with mostly empty parameters.
const DONE_TOGETHER_MIN: usize = 6;

/// The answer stored in a receipt. Absent in the usual case.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    fenced: Vec<i64>,
    lanes: Vec<i64>,
}

/// Applies a batch, or repeats the answer of its receipt.
pub(crate) fn settle(tx: &mut Tx<'_>, batch: &SettleBatch) -> Step<Settled> {
    if let Some(settled) = replay(tx, batch)? {
        return Ok(settled);
    }
    let mut settled = Settled::default();
    let (mut done, mut later, mut released) = (Done::default(), Later::default(), Vec::new());
    for item in &batch.items {
        match tx.memory.take(batch.worker, item.lease) {
            Some(held) => {
                let ending = Ending { worker: batch.worker, id: item.lease.id, held };
                apply(tx, item, ending, (&mut done, &mut later, &mut released))?;
            }
            None => settled.fenced.push(item.lease.id),
        }
    }
    done.write(tx, batch.worker)?;
    later.write(tx, batch.worker)?;
    hand_back(tx, released, &mut settled.lanes_ready)?;
    admit::give_turns(tx)?;
    settled.lanes_ready.extend(&tx.touched.lanes_ready);
    settled.lanes_ready.sort_unstable();
    settled.lanes_ready.dedup();
    note_receipt(tx, batch, &settled)?;
    settled.next_due = tx.next_due()?;
    Ok(settled)
}

/// The stored answer of a batch that was applied already.
fn replay(tx: &Tx<'_>, batch: &SettleBatch) -> Step<Option<Settled>> {
    let known = tx.memory.worker(batch.worker).and_then(|worker| worker.receipts.get(&batch.settler_no));
    if known.is_some_and(|known| *known < batch.batch_no) {
        return Ok(None);
    }
    let stored: Option<(i64, Option<String>)> = tx
        .sql(sql::FIND_RECEIPT)?
        .query_row((batch.worker.0, batch.settler_no), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((batch_no, answer)) = stored else { return Ok(None) };
    match (batch_no as u64).cmp(&batch.batch_no) {
        std::cmp::Ordering::Less => Ok(None),
        std::cmp::Ordering::Equal => {
            let answer = answer.and_then(|text| serde_json::from_str::<Answer>(&text).ok());
            let (fenced, lanes) = answer.map(|answer| (answer.fenced, answer.lanes)).unwrap_or_default();
            Ok(Some(Settled {
                fenced: fenced.into_iter().map(TaskId::from_raw).collect(),
                lanes_ready: lanes.into_iter().map(LaneId).collect(),
                next_due: tx.next_due()?,
                replayed: true,
            }))
        }
        std::cmp::Ordering::Greater => Err(Error::Conflict(format!(
            "batch {} of settler {} is older than its last, {batch_no}; a settler sends one batch at a time",
            batch.batch_no, batch.settler_no
        ))
        .into()),
    }
}

fn note_receipt(tx: &mut Tx<'_>, batch: &SettleBatch, settled: &Settled) -> Step<()> {
    // An ended registration holds no lease, so a repeated batch is fenced again without a receipt.
    if tx.memory.worker(batch.worker).is_none() {
        return Ok(());
    }
    let is_plain = settled.fenced.is_empty() && settled.lanes_ready.is_empty();
    let answer = (!is_plain).then(|| Answer {
        fenced: settled.fenced.iter().map(|id| id.raw()).collect(),
        lanes: settled.lanes_ready.iter().map(|lane| lane.0).collect(),
    });
    let text = answer.and_then(|answer| serde_json::to_string(&answer).ok());
    tx.sql(sql::PUT_RECEIPT)?.execute((batch.worker.0, batch.settler_no, batch.batch_no as i64, text))?;
    tx.memory.note_receipt(batch.worker, batch.settler_no, batch.batch_no);
    Ok(())
}

/// Writes the end of one attempt, or collects it for a statement that writes several.
fn apply<'a>(
    tx: &mut Tx<'_>,
    item: &'a SettleItem,
    ending: Ending,
    (done, later, released): (&mut Done, &mut Later<'a>, &mut Vec<Ending>),
) -> Step<()> {
    // A cancellation was requested: every end but success is that cancellation.
    if let (Some(reason), false) = (&ending.held.cancel, matches!(item.settlement, Settlement::Done { .. })) {
        return ending.leave(tx, State::Cancelled, Some(reason), None);
    }
    match &item.settlement {
        Settlement::Done { output: None, note: None } if ending.held.cancel.is_none() => {
            done.add(ending);
            Ok(())
        }
        Settlement::Done { output, note } => ending.leave(tx, State::Done, note.as_deref(), output.as_ref()),
        // The row says how many attempts were granted; the worker only reports a failure.
        Settlement::Retry { error, .. } if ending.held.attempt >= ending.held.max_attempts => {
            ending.fail(tx, error)
        }
        Settlement::Retry { due_at, error } => {
            later.add(ending, *due_at, Some(error));
            Ok(())
        }
        Settlement::Snooze { due_at } => {
            later.add(ending, *due_at, None);
            Ok(())
        }
        Settlement::Release => {
            released.push(ending);
            Ok(())
        }
        Settlement::Dead { error } => ending.fail(tx, error),
        Settlement::Cancelled { reason } => ending.leave(tx, State::Cancelled, Some(reason), None),
    }
}

/// Hands attempts back in the order of their tasks, as every other hand-back does: each draws its place in the
/// ready line.
fn hand_back(tx: &mut Tx<'_>, mut released: Vec<Ending>, lanes_ready: &mut Vec<LaneId>) -> Step<()> {
    released.sort_unstable_by_key(|ending| ending.id);
    for ending in released {
        if ending.hand_back(tx)? == State::Ready {
            lanes_ready.push(ending.held.lane);
        }
    }
    Ok(())
}

/// Attempts that succeeded and left nothing to record: the usual case, written many at a time.
#[derive(Default)]
struct Done {
    endings: Vec<Ending>,
}

impl Done {
    fn add(&mut self, ending: Ending) {
        self.endings.push(ending);
    }

    fn write(self, tx: &mut Tx<'_>, worker: WorkerId) -> Step<()> {
        let (kept, dropped): (Vec<_>, Vec<_>) = match tx.options.history {
            crate::connection::options::History::Kept => (self.endings, Vec::new()),
            crate::connection::options::History::Off => {
                self.endings.into_iter().partition(|ending| must_keep(tx, ending.id, false))
            }
        };
        write_all(tx, worker, &kept, Keep::Yes)?;
        write_all(tx, worker, &dropped, Keep::No)
    }
}

/// Whether ended tasks go into the history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

fn write_all(tx: &mut Tx<'_>, worker: WorkerId, endings: &[Ending], keep: Keep) -> Step<()> {
    for chunk in endings.chunks(DONE_PER_STATEMENT) {
        if chunk.len() < DONE_TOGETHER_MIN {
            for ending in chunk {
                ending.leave(tx, State::Done, None, None)?;
            }
        } else {
            write_chunk(tx, worker, chunk, keep)?;
        }
    }
    Ok(())
}

fn write_chunk(tx: &mut Tx<'_>, worker: WorkerId, chunk: &[Ending], keep: Keep) -> Step<()> {
    for ending in chunk.iter().filter(|ending| ending.held.keyed) {
        keyed::expire(tx, ending.id)?;
    }
    if keep == Keep::Yes {
        let mut statement = tx.sql(sql::KEEP_DONE)?;
        statement.raw_bind_parameter(1, tx.now.as_ms())?;
        statement.raw_bind_parameter(2, worker.0)?;
        run_for(&mut statement, 3, chunk)?;
        let bytes = chunk.iter().map(|ending| u64::from(ending.held.payload_bytes)).sum();
        if let Some(first) = chunk.iter().map(|ending| ending.id).min() {
            count_kept(tx, first, chunk.len() as u64, bytes);
        }
    }
    tx.effects.figures = true;
    let mut statement = tx.sql(sql::DELETE_DONE)?;
    statement.raw_bind_parameter(1, worker.0)?;
    run_for(&mut statement, 2, chunk)?;
    for lane in chunk.chunk_by(|a, b| a.held.lane == b.held.lane) {
        if let [first, ..] = lane {
            tx.memory.count(first.held.lane, State::Running, -(lane.len() as i64));
        }
    }
    for ending in chunk {
        ending.tell_gates(tx, State::Done)?;
    }
    tx.effects.ended.extend(chunk.iter().map(|ending| ending.id));
    Ok(())
}

/// Binds the task ids after the other parameters, fills up with NULL, and runs the statement.
fn run_for(statement: &mut CachedStatement<'_>, first: usize, chunk: &[Ending]) -> Step<()> {
    for (place, ending) in chunk.iter().enumerate() {
        statement.raw_bind_parameter(first + place, ending.id.raw())?;
    }
    for place in chunk.len()..DONE_PER_STATEMENT {
        statement.raw_bind_parameter(first + place, Null)?;
    }
    if statement.raw_execute()? == chunk.len() { Ok(()) } else { Err(disagree("running tasks")) }
}
