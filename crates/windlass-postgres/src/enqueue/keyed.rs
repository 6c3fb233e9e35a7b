//! Idempotency keys: the same (queue, key) gives one task (ENQ-IDEMPOTENT).
//!
//! Keys are taken in one statement and read in the next. The second transaction to take a key waits until the
//! first one commits, and only a later statement sees what the first one wrote.

use std::collections::HashMap;

use windlass_core::{Enqueued, Error, Name, NewTask, Result, TaskId};

use crate::{
    connection::{error::Failure, pool::Session, repeat::repeat},
    enqueue::{self, Added, insert, lanes_of},
    shared::Shared,
    sql,
};

/// How long an enqueue waits for another transaction that has just taken the same key. All keyed enqueues of
/// this process wait with it.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '500ms'";

/// Adds tasks of which some have keys, all in one transaction; the answers are in the order of the tasks.
pub(crate) async fn add(shared: &Shared, tasks: &[NewTask]) -> Result<Vec<Enqueued>> {
    let plan = Plan::of(tasks)?;
    let lanes = lanes_of(shared, tasks).await?;
    repeat(|| add_once(shared, tasks, &lanes, &plan)).await
}

async fn add_once(
    shared: &Shared,
    tasks: &[NewTask],
    lanes: &[i32],
    plan: &Plan<'_>,
) -> Result<Vec<Enqueued>, Failure> {
    let mut session = shared.pool.session().await?;
    session.begin().await?;
    session.batch(LOCK_TIMEOUT).await?;
    let (answers, added) = match insert_planned(shared, &mut session, tasks, lanes, plan).await {
        Ok(done) => done,
        Err(failure) => {
            if !failure.is_broken {
                session.rollback().await;
            }
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
    insert_planned(shared, session, tasks, lanes, &Plan::of(tasks)?).await
}

async fn insert_planned(
    shared: &Shared,
    session: &mut Session<'_>,
    tasks: &[NewTask],
    lanes: &[i32],
    plan: &Plan<'_>,
) -> Result<(Vec<Enqueued>, Option<Added>), Failure> {
    // Drawn for all tasks at once, so that the ids have the order of the batch.
    let ids = session.query(&sql::DRAW_IDS, &[&(tasks.len() as i64)]).await?;
    let ids: Vec<i64> = ids.iter().map(|row| row.get(0)).collect();
    let holders = plan.settle(session, tasks, &ids).await?;
    let is_fresh = |place: &usize| match plan.roles.get(*place) {
        Some(Role::Plain) => true,
        Some(Role::First) => holders.get(place).is_some_and(|holder| holder.is_ours),
        _ => false,
    };
    let places: Vec<usize> = (0..tasks.len()).filter(is_fresh).collect();
    let fresh: Vec<NewTask> = places.iter().filter_map(|place| tasks.get(*place).cloned()).collect();
    let their_lanes: Vec<i32> = places.iter().filter_map(|place| lanes.get(*place).copied()).collect();
    let their_ids: Vec<i64> = places.iter().filter_map(|place| ids.get(*place).copied()).collect();
    let added = if fresh.is_empty() {
        None
    } else {
        Some(insert(shared, session, &fresh, &their_lanes, Some(&their_ids)).await?)
    };
    let mut answers: Vec<Option<Enqueued>> = vec![None; tasks.len()];
    if let Some(added) = &added {
        for (place, task) in places.iter().zip(&added.tasks) {
            if let Some(answer) = answers.get_mut(*place) {
                *answer = Some(*task);
            }
        }
    }
    Ok((plan.answers(&holders, answers)?, added))
}

/// The task that a key belongs to, while that is remembered.
pub(crate) async fn holder(shared: &Shared, queue: &Name, key: &str) -> Result<Option<TaskId>> {
    let row = shared.pool.row(&sql::KEY_HOLDER, &[&queue.as_str(), &key]).await?;
    Ok(row.map(|row| TaskId::from_raw(row.get(0))))
}

/// What one task of a batch means for keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It has no key.
    Plain,
    /// It is the first of the batch with its key.
    First,
    /// The key is that of an earlier task of the batch, at this index.
    SameAs(usize),
}

/// The roles of a batch, decided before anything is sent.
struct Plan<'a> {
    roles: Vec<Role>,
    first: Vec<(usize, &'a str, &'a str)>,
}

/// The task that has a key.
struct Holder {
    task: i64,
    is_ours: bool,
}

impl<'a> Plan<'a> {
    fn of(tasks: &'a [NewTask]) -> Result<Self> {
        let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
        let mut plan = Self { roles: Vec::with_capacity(tasks.len()), first: Vec::new() };
        for (place, task) in tasks.iter().enumerate() {
            let Some(key) = &task.key else {
                plan.roles.push(Role::Plain);
                continue;
            };
            let name = (task.queue.as_str(), key.text.as_str());
            let Some(earlier) = seen.get(&name).copied() else {
                seen.insert(name, place);
                plan.roles.push(Role::First);
                plan.first.push((place, name.0, name.1));
                continue;
            };
            let is_same = tasks
                .get(earlier)
                .is_some_and(|first| first.kind == task.kind && first.payload == task.payload);
            if !is_same && !key.ignore_conflict {
                return Err(Error::invalid(format!(
                    "idempotency key {:?} is used twice in one batch with different kinds or payloads",
                    key.text
                )));
            }
            plan.roles.push(Role::SameAs(earlier));
        }
        Ok(plan)
    }

    /// Takes the free keys, and finds the tasks that have the others. A conflict refuses the batch.
    async fn settle(
        &self,
        session: &mut Session<'_>,
        tasks: &[NewTask],
        ids: &[i64],
    ) -> Result<HashMap<usize, Holder>, Failure> {
        let of = |place: &usize| tasks.get(*place);
        let places: Vec<usize> = self.first.iter().map(|(place, ..)| *place).collect();
        let queues: Vec<&str> = self.first.iter().map(|(_, queue, _)| *queue).collect();
        let keys: Vec<&str> = self.first.iter().map(|(.., key)| *key).collect();
        let kinds: Vec<&str> = places.iter().filter_map(of).map(|task| task.kind.as_str()).collect();
        let encodings: Vec<i16> =
            places.iter().filter_map(of).map(|task| task.payload.encoding().code() as i16).collect();
        let payloads: Vec<&[u8]> = places.iter().filter_map(of).map(|task| task.payload.as_bytes()).collect();
        let by_name: HashMap<(&str, &str), usize> =
            self.first.iter().map(|(place, queue, key)| ((*queue, *key), *place)).collect();
        let drawn: Vec<i64> = places.iter().filter_map(|place| ids.get(*place).copied()).collect();
        let taken =
            session.query(&sql::KEY_TAKE, &[&queues, &keys, &kinds, &encodings, &payloads, &drawn]).await?;
        let mut holders = HashMap::new();
        for row in &taken {
            if let Some(place) = by_name.get(&(row.get(0), row.get(1))) {
                holders.insert(*place, Holder { task: row.get(2), is_ours: true });
            }
        }
        if holders.len() < places.len() {
            let known =
                session.query(&sql::KEY_READ, &[&queues, &keys, &kinds, &encodings, &payloads]).await?;
            for row in &known {
                let Some(place) = by_name.get(&(row.get(0), row.get(1))) else { continue };
                let Some(key) = tasks.get(*place).and_then(|task| task.key.as_ref()) else { continue };
                let (task, is_same): (i64, bool) = (row.get(2), row.get(3));
                if holders.contains_key(place) {
                    continue;
                }
                if !is_same && !key.ignore_conflict {
                    let existing = TaskId::from_raw(task);
                    return Err(Error::KeyConflict { key: key.text.clone(), existing }.into());
                }
                holders.insert(*place, Holder { task, is_ours: false });
            }
        }
        Ok(holders)
    }

    fn answers(
        &self,
        holders: &HashMap<usize, Holder>,
        mut answers: Vec<Option<Enqueued>>,
    ) -> Result<Vec<Enqueued>, Failure> {
        for (place, role) in self.roles.iter().enumerate() {
            let found = match role {
                Role::Plain => continue,
                // A task of this batch was just added, and has its answer.
                Role::First => holders.get(&place).filter(|holder| !holder.is_ours),
                Role::SameAs(first) => holders.get(first),
            };
            if let (Some(answer), Some(holder)) = (answers.get_mut(place), found) {
                *answer = Some(Enqueued::existing(TaskId::from_raw(holder.task)));
            }
        }
        answers.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| {
            Error::Unavailable("a key was neither taken nor found; try again".to_owned()).into()
        })
    }
}
