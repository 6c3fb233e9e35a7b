//! Claims in a transaction: several demands together, all or none, and suspects of crashes before other
//! tasks.

use windlass_core::{Claimed, Demand, Error, Result, affinity::hand_over, source::Rest};

use crate::{
    claim::{
        Found,
        look::look,
        suspect::{Waiting, stand_aside, take_suspects},
        take::{Suspects, Took, take},
        wanted,
    },
    connection::pool::Session,
    shared::Shared,
    sql,
};

/// Serves demands in one transaction.
pub(super) async fn claim(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
    waiting: Waiting,
) -> Result<Vec<Found>> {
    let claimed = one_after_another(shared, session, demands, waiting).await;
    if claimed.is_err() {
        // The rollback is awaited: until it is done the next claim would skip the locked rows.
        session.rollback().await;
    }
    claimed
}

async fn one_after_another(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
    waiting: Waiting,
) -> Result<Vec<Found>> {
    let workers: Vec<i64> = demands.iter().map(|demand| demand.worker.0).collect();
    let numbers: Vec<i64> = demands.iter().map(|demand| demand.claim_no as i64).collect();
    let locked = session.begin_with(&[(&sql::CLAIM_LOCK, &[&workers, &numbers])]).await?;
    if locked.first().is_none_or(|rows| rows.len() < demands.len()) {
        return Err(Error::WorkerExpired);
    }
    if waiting == Waiting::Sort && stand_aside(shared, session, demands).await? {
        session.commit().await?;
        return Ok(vec![Found::gates_first()]);
    }
    let mut all: Vec<Found> = Vec::with_capacity(demands.len());
    for (place, demand) in demands.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| demands.get(before).zip(all.last()));
        let empty = before.filter(|(before, found)| {
            before.lanes == demand.lanes && before.n > 0 && found.answer.rest == Rest::Nothing
        });
        // The demand before it found nothing in the same lanes, so neither does this one.
        let found = match empty {
            Some((_, found)) if demand.n > 0 => found.without_tasks(),
            _ => one(shared, session, demand).await?,
        };
        all.push(found);
    }
    commit(session, demands, &mut all).await?;
    Ok(all)
}

/// One demand, under the lock of its worker's row: suspects first.
async fn one(shared: &Shared, session: &mut Session<'_>, demand: &Demand) -> Result<Found> {
    let mut took = take_suspects(shared, session, demand).await?;
    let room = wanted(demand) - took.tasks.len() as i64;
    let start = shared.start(&demand.lanes);
    if room > 0 {
        // A suspect on its last chance runs alone: then this takes nothing.
        let Took { tasks, has_started } = take(shared, session, demand, &start, room, Suspects::Done).await?;
        took.tasks.extend(tasks);
        took.has_started |= has_started;
    }
    let is_full = took.tasks.len() as i64 >= wanted(demand);
    if let Some(now) = took.tasks.first().map(|task| task.claimed_at).filter(|_| is_full)
        && shared.looks.is_fresh()
    {
        return Ok(Found::unseen(shared, demand, now, took));
    }
    let view = look(shared, session, demand, &start).await?;
    Ok(Found::seen(demand, &view, took))
}

/// Ends the claim. Steps of workflows go to the worker that prefers their workflow, sent together with the
/// commit.
async fn commit(session: &mut Session<'_>, demands: &[Demand], all: &mut [Found]) -> Result<()> {
    if demands.iter().all(|demand| demand.prefers.is_nothing()) {
        return Ok(session.commit().await?);
    }
    let closed: Vec<bool> = all.iter().map(|found| found.is_isolated).collect();
    let mut tasks: Vec<Claimed> =
        all.iter_mut().flat_map(|found| std::mem::take(&mut found.answer.tasks)).collect();
    let may_get = |place: usize| closed.get(place).is_some_and(|closed| !closed);
    let changes = hand_over(demands, &tasks, may_get);
    let (mut ids, mut workers, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        let (Some(task), Some(to)) = (tasks.get_mut(change.task), demands.get(change.to)) else { continue };
        (task.worker, task.claim_no) = (to.worker, to.claim_no);
        ids.push(task.id.raw());
        workers.push(to.worker.0);
        numbers.push(to.claim_no as i64);
    }
    if ids.is_empty() {
        session.commit().await?;
    } else {
        let moved = session.commit_with(&sql::CLAIM_HAND_OVER, &[&ids, &workers, &numbers]).await?;
        if moved.len() != ids.len() {
            // The claim is committed: the caller has it undone.
            return Err(Error::Unknown("a claim handed over a lease that it did not have".to_owned()));
        }
    }
    if let Some(first) = all.first_mut() {
        first.answer.tasks = tasks;
    }
    Ok(())
}
