//! The short ways of a claim, which take tasks and do not look how things stand.

use tokio_postgres::Row;
use windlass_core::{ClaimAnswer, Demand, Result, Timestamp, source::Rest};

use crate::{
    claim::{Brought, wanted},
    pool::Session,
    shared::Shared,
    sql,
    taken::{read, unreadable},
};

/// Takes tasks, if any can be taken without a look at how things stand. Whether there are more is known as long as the last such look
/// is fresh.
pub(crate) async fn quickly(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
) -> Result<Option<Brought>> {
    let stretches = shared.stretches(&demand.lanes);
    let (n, claim_no) = (wanted(demand), demand.claim_no as i64);
    let too_many = if demand.lanes.len() < 2 { i64::MAX } else { n - 1 };
    let rows = session
        .query(
            &sql::CLAIM_QUICK,
            &[
                &demand.worker.0,
                &claim_no,
                &n,
                &stretches.lanes,
                &stretches.highs,
                &stretches.lows,
                &stretches.afters,
                &too_many,
                &stretches.are_deep,
            ],
        )
        .await?;
    let is_short = (rows.len() as i64) < n;
    if is_short && stretches.are_deep {
        // What it passed over may be ready: the next one looks for it, and comes at once.
        shared.note_taken(&demand.lanes, std::iter::empty(), is_short);
        return without_a_look(shared, demand, &rows, Rows { is_short, has_more: true }).await;
    }
    without_a_look(shared, demand, &rows, Rows { is_short, has_more: !is_short }).await
}

/// How things stand.
#[derive(Default)]
pub(crate) struct Seen {
    /// When something is due next, also if that is over.
    pub next_due: Option<Timestamp>,
    /// A gate is to be looked at.
    pub has_todo: bool,
}

/// Looks how things stand and takes nothing.
pub(crate) async fn look_around(shared: &Shared, session: &mut Session<'_>) -> Result<Seen> {
    let row = session.row(&sql::LOOK, &[]).await?.ok_or_else(|| unreadable("a look without an answer"))?;
    let next_due = row.get::<_, Option<i64>>(0).map(Timestamp::from_ms);
    shared.looks.looked_around(next_due);
    Ok(Seen { next_due, has_todo: row.get(1) })
}

/// Takes the task that a hint was about, if it can be taken without a look at how things stand.
pub(crate) async fn by_name(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    task: i64,
) -> Result<Option<Brought>> {
    let lanes: Vec<i32> = demand.lanes.iter().map(|lane| lane.0 as i32).collect();
    let claim_no = demand.claim_no as i64;
    let rows = session.query(&sql::CLAIM_NAMED, &[&demand.worker.0, &claim_no, &task, &lanes]).await?;
    // It may have stood anywhere in its line: the next claim looks further back for what stands before it.
    let has_more = rows.len() as i64 >= wanted(demand);
    without_a_look(shared, demand, &rows, Rows { is_short: true, has_more }).await
}

/// Brings what was leased by an offer of this worker, if there is any.
pub(crate) fn by_offer(shared: &Shared, demands: &[Demand]) -> Option<ClaimAnswer> {
    let [demand] = demands else { return None };
    let tasks = shared.offers.bring(demand);
    let now = tasks.last()?.claimed_at;
    let is_full = tasks.len() as i64 >= wanted(demand);
    let is_fresh = shared.looks.took(demand.worker, is_full);
    let rest = if is_full || !is_fresh { Rest::More } else { Rest::Nothing };
    Some(ClaimAnswer { tasks, rest, next_due: shared.looks.next_due(now), now })
}

/// What the rows of a claim say of the line.
struct Rows {
    /// The next claim looks further back.
    is_short: bool,
    /// There may be more.
    has_more: bool,
}

/// What a claim brought that did not look how things stand; nothing if it brought nothing.
async fn without_a_look(
    shared: &Shared,
    demand: &Demand,
    rows: &[Row],
    Rows { is_short, has_more }: Rows,
) -> Result<Option<Brought>> {
    let Some(now) = rows.first().map(|row| Timestamp::from_ms(row.get(16))) else { return Ok(None) };
    let tasks = read(shared, demand, now, rows, 0, is_short).await?;
    let owes_look = !shared.looks.took(demand.worker, has_more);
    let rest = if has_more || owes_look { Rest::More } else { Rest::Nothing };
    Ok(Some(Brought {
        tasks,
        rest,
        next_due: shared.looks.next_due(now),
        now,
        lanes: None,
        has_todo: false,
        has_started: false,
        is_isolated: false,
        owes_look: owes_look && !has_more,
    }))
}
