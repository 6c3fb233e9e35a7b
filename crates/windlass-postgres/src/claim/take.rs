//! Takes ready tasks, and reads the rows of the answer.

use std::{cmp::Reverse, sync::Arc};

use windlass_core::{Claimed, Demand, Lane, Result};

use crate::{
    claim::{
        read_position::{Start, Taken},
        row::{self, claimed, lane_of},
        suspect::{ISOLATION_MS, last_chance},
    },
    connection::pool::Session,
    shared::Shared,
    sql,
};

/// What is done with suspects of crashes that wait in the lanes of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspects {
    /// Nothing is taken while one waits.
    First,
    /// They have had their turn in this claim: other tasks are taken beside those that still wait.
    Done,
}

/// What a take brought, in the order in which the tasks are to start.
#[derive(Default)]
pub(crate) struct Took {
    pub tasks: Vec<Claimed>,
    /// A task of a job with a delay is among them: its start must be recorded for the job.
    pub has_started: bool,
}

/// Takes up to `n` ready tasks for a demand, from where `start` says, and moves the read positions on.
pub(crate) async fn take(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    start: &Start,
    n: i64,
    suspects: Suspects,
) -> Result<Took> {
    let (claim_no, last_chance) = (demand.claim_no as i64, last_chance(&shared.rules));
    let held_back_by = if suspects == Suspects::First { start.lanes.clone() } else { Vec::new() };
    let has_several_lanes = demand.lanes.len() > 1;
    let rows = session
        .query(
            &sql::TAKE,
            &[
                &demand.worker.0,
                &claim_no,
                &n,
                &start.lanes,
                &start.highs,
                &start.lows,
                &start.afters,
                &last_chance,
                &ISOLATION_MS,
                &held_back_by,
                &has_several_lanes,
            ],
        )
        .await?;
    let mut lane: Option<Arc<Lane>> = None;
    let mut taken = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = row::lane(row);
        let known = match &lane {
            Some(known) if known.id.0 == i64::from(id) => Arc::clone(known),
            _ => lane_of(shared, id).await?,
        };
        lane = Some(Arc::clone(&known));
        let task = claimed(demand, known, row);
        taken.push((Taken { lane: id, priority: task.priority, ready_seq: row::ready_seq(row) }, task));
    }
    // The server answers in the order of the rows.
    taken.sort_unstable_by_key(|(at, _)| (Reverse(at.priority), at.ready_seq));
    let is_short = (taken.len() as i64) < n;
    shared.read_positions().ended(start, taken.iter().map(|(at, _)| *at), is_short, shared.now());
    Ok(Took {
        has_started: rows.iter().any(row::is_paced),
        tasks: taken.into_iter().map(|(_, task)| task).collect(),
    })
}
