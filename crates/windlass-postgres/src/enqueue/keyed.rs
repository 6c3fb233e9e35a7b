//! Idempotency keys: the same (queue, key) gives one task (ENQ-IDEMPOTENT).
//!
//! Keys are taken in one statement and read in the next. The second transaction to take a key waits until the
//! first one commits, and only a later statement sees what the first one wrote.

use std::collections::{HashMap, HashSet};

use windlass_core::{Enqueued, Error, Name, NewTask, Result, TaskId, task::batch};

use crate::{
    connection::{
        error::Failure,
        pool::Session,
        repeat::repeat,
        values::{Cells, column},
    },
    enqueue::{self, Added, Columns, insert, lanes_of},
    shared::Shared,
    sql,
};

/// How long an enqueue waits for another transaction that has just taken the same key. All keyed enqueues of
/// this process wait with it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '500ms'";

/// Adds tasks of which some have keys, all in one transaction; the answers are in the order of the tasks.
pub(crate) async fn add(shared: &Shared, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
    let plan = plan(tasks)?;
    let lanes = lanes_of(shared, tasks).await?;
    repeat(|| add_once(shared, tasks, &lanes, &plan)).await
}

async fn add_once(
    shared: &Shared,
    tasks: &[NewTask],
    lanes: &[i32],
    plan: &[Option<usize>],
) -> Result<Vec<Enqueued>, Failure> {
    let mut session = shared.pool.session().await?;
    session.begin().await?;
    session.batch(LOCK_TIMEOUT).await?;
    let (answers, added) = match insert_planned(shared, &mut session, tasks, lanes, plan).await {
        Ok(done) => done,
        Err(failure) => {
            session.rollback().await;
            return Err(failure);
        }
    };
    session.commit().await?;
    if let Some(added) = &added {
        enqueue::tell(shared, added);
    }
    Ok(answers)
}

/// Adds tasks inside the session's transaction.
pub(crate) async fn add_within(
    shared: &Shared,
    session: &mut Session<'_>,
    tasks: &[NewTask],
    lanes: &[i32],
) -> Result<(Vec<Enqueued>, Option<Added>), Failure> {
    insert_planned(shared, session, tasks, lanes, &plan(tasks)?).await
}

async fn insert_planned(
    shared: &Shared,
    session: &mut Session<'_>,
    tasks: &[NewTask],
    lanes: &[i32],
    plan: &[Option<usize>],
) -> Result<(Vec<Enqueued>, Option<Added>), Failure> {
    // Drawn for all tasks at once, so that the ids have the order of the batch.
    let ids = session.query(&sql::DRAW_IDS, &[&(tasks.len() as i64)]).await?;
    let ids = column(&ids, |row| row.get::<_, i64>(0));
    let holders = settle_keys(shared, session, tasks, &ids, plan).await?;
    let is_new = |place: usize, first: Option<usize>| {
        first.is_none_or(|first| first == place && holders.get(&first).is_some_and(|holder| holder.is_ours))
    };
    let places: Vec<usize> = plan
        .iter()
        .enumerate()
        .filter(|(place, first)| is_new(*place, **first))
        .map(|(place, _)| place)
        .collect();
    let added = if places.is_empty() {
        None
    } else {
        let (tasks, lanes, ids) = (pick(tasks, &places), pick(lanes, &places), pick(&ids, &places));
        Some(insert(shared, session, &tasks, &lanes, Some(&ids)).await?)
    };
    let mut new = added.iter().flat_map(|added| added.tasks.iter().copied());
    let answer = |(place, first): (usize, &Option<usize>)| match first {
        Some(first) if !is_new(place, Some(*first)) => {
            holders.get(first).map(|holder| Enqueued::existing(TaskId::from_raw(holder.task)))
        }
        _ => new.next(),
    };
    let answers: Option<Vec<Enqueued>> = plan.iter().enumerate().map(answer).collect();
    let lost = || Error::Unavailable("a key was neither taken nor found; try again".to_owned());
    Ok((answers.ok_or_else(lost)?, added))
}

fn pick<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().filter_map(|place| all.get(*place).cloned()).collect()
}

/// The task that a key belongs to, while that is remembered.
pub(crate) async fn holder(shared: &Shared, queue: &Name, key: &str) -> Result<Option<TaskId>> {
    let row = shared.pool.row(&sql::KEY_HOLDER, &[&queue.as_str(), &key]).await?;
    Ok(row.map(|row| row.task(0)))
}

/// For each task with a key, the place of the first task of the batch with that key. Decided before anything is
/// sent.
///
/// Callers whose tasks are written together may use one key for different tasks. Then the plan is refused, and
/// each caller's tasks are written alone.
fn plan(tasks: &[NewTask]) -> Result<Vec<Option<usize>>> {
    batch::check_keys(tasks)?;
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    let mut plan = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        let key = task.key.as_ref();
        plan.push(key.map(|key| *seen.entry((task.queue.as_str(), key.text.as_str())).or_insert(place)));
    }
    Ok(plan)
}

/// The task that has a key.
struct Holder {
    task: i64,
    is_ours: bool,
}

/// Takes the free keys, and finds the tasks that have the others. A conflict refuses the batch. Answers by the
/// place of the first task with the key.
async fn settle_keys(
    shared: &Shared,
    session: &mut Session<'_>,
    tasks: &[NewTask],
    ids: &[i64],
    plan: &[Option<usize>],
) -> Result<HashMap<usize, Holder>, Failure> {
    let places: Vec<usize> =
        (0..).zip(plan).filter(|(place, first)| **first == Some(*place)).map(|(place, _)| place).collect();
    let firsts = pick(tasks, &places);
    let rows = column(&firsts, |task| Columns::of(task, &shared.rules));
    let (queues, keys) = (column(&rows, |row| row.queue), column(&rows, |row| row.key));
    let (kinds, drawn) = (column(&rows, |row| row.kind), pick(ids, &places));
    let (encodings, payloads) = (column(&rows, |row| row.encoding), column(&rows, |row| row.payload));
    let by_name: HashMap<(&str, Option<&str>), usize> =
        rows.iter().zip(&places).map(|(row, place)| ((row.queue, row.key), *place)).collect();
    let mut holders = HashMap::new();
    let taken =
        session.query(&sql::KEY_TAKE, &[&queues, &keys, &kinds, &encodings, &payloads, &drawn]).await?;
    for row in &taken {
        if let Some(place) = by_name.get(&(row.get(0), row.get(1))) {
            holders.insert(*place, Holder { task: row.get(2), is_ours: true });
        }
    }
    if holders.len() == places.len() {
        return Ok(holders);
    }
    // Keys that some task of the batch does not want to share with another payload.
    let is_strict = |task: &NewTask| task.key.as_ref().is_some_and(|key| !key.ignore_conflict);
    let strict: HashSet<usize> =
        tasks.iter().zip(plan).filter(|(task, _)| is_strict(task)).filter_map(|(_, first)| *first).collect();
    let known = session.query(&sql::KEY_READ, &[&queues, &keys, &kinds, &encodings, &payloads]).await?;
    for row in &known {
        let Some(place) = by_name.get(&(row.get(0), row.get(1))) else { continue };
        let (task, is_same): (i64, bool) = (row.get(2), row.get(3));
        if holders.contains_key(place) {
            continue;
        }
        if !is_same && strict.contains(place) {
            let (key, existing) = (row.get(1), TaskId::from_raw(task));
            return Err(Error::KeyConflict { key, existing }.into());
        }
        holders.insert(*place, Holder { task, is_ours: false });
    }
    Ok(holders)
}
