//! Claim: ready tasks become leases of a worker.
//!
//! A claim goes one of four ways. What an offer brought is in this process already
//! ([`crate::wakeup::offer`]). One demand takes, and looks how things stand where that is needed ([`take`],
//! [`look`]). Suspects of crashes, and several demands together, need a transaction ([`together`],
//! [`suspect`]).

pub(crate) mod look;
pub(crate) mod read_position;
pub(crate) mod row;
pub(crate) mod suspect;
mod take;
mod together;

use windlass_core::{ClaimAnswer, Claimed, Demand, Error, LaneId, Result, Timestamp, source::Rest};

use crate::{
    claim::{
        look::{View, look},
        suspect::Waiting,
        take::{Suspects, Took, take},
    },
    connection::pool::Session,
    gates::admit,
    leases::epoch,
    shared::Shared,
    sql,
    upkeep::lanes::LanesInUse,
    wakeup::doorbell::{disarm, numbers},
};

/// Most tasks that one demand may take.
const CLAIM_MAX: u32 = 10_000;

/// How many tasks a demand may take.
pub(crate) fn wanted(demand: &Demand) -> i64 {
    i64::from(demand.n.min(CLAIM_MAX))
}

/// What a claim found, for one demand or for several.
#[expect(clippy::struct_excessive_bools, reason = "each is a word of the answer")]
struct Found {
    answer: ClaimAnswer,
    /// Which lanes are in use, if the claim looked.
    lanes: Option<LanesInUse>,
    /// Admission must look at a gate.
    has_todo: bool,
    /// A task of a job with a delay was taken.
    has_started: bool,
    /// A suspect on its last chance has the worker to itself.
    is_isolated: bool,
    /// A look is due, and the next claim does it: the tasks go first.
    owes_look: bool,
}

impl Found {
    fn new(tasks: Vec<Claimed>, rest: Rest, next_due: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            answer: ClaimAnswer { tasks, rest, next_due, now },
            lanes: None,
            has_todo: false,
            has_started: false,
            is_isolated: false,
            owes_look: false,
        }
    }

    /// The answer of a claim that has looked, before the take or after it.
    fn seen(demand: &Demand, view: &View, took: Took) -> Self {
        let rest = match (took.tasks.len() as i64) < wanted(demand) {
            false => Rest::More,
            true if view.is_blocked => Rest::Blocked,
            true => Rest::Nothing,
        };
        Self {
            lanes: Some(view.lanes),
            has_todo: view.has_todo,
            has_started: took.has_started,
            is_isolated: view.is_isolated,
            ..Self::new(took.tasks, rest, view.next_due, view.now)
        }
    }

    /// The answer of a take without a look, which took at least one task.
    fn unseen(shared: &Shared, demand: &Demand, now: Timestamp, took: Took) -> Self {
        let is_full = took.tasks.len() as i64 >= wanted(demand);
        let owes_look = shared.looks.took(is_full);
        let rest = if is_full || owes_look { Rest::More } else { Rest::Nothing };
        Self {
            has_started: took.has_started,
            owes_look: owes_look && !is_full,
            ..Self::new(took.tasks, rest, shared.looks.next_due(now), now)
        }
    }

    /// Nothing yet: the caller has admission look at the gates first.
    fn gates_first() -> Self {
        Self { has_todo: true, ..Self::new(Vec::new(), Rest::Nothing, None, Timestamp::from_ms(0)) }
    }

    /// The same answer for another worker, for which nothing was left.
    fn without_tasks(&self) -> Self {
        let answer = ClaimAnswer { tasks: Vec::new(), ..self.answer };
        Self { answer, has_started: false, is_isolated: false, ..*self }
    }
}

/// Claims. A worker that becomes idle arms the doorbell and claims once more, so that it misses no task that
/// was added in between, and offers to take the next task. The doorbell of a busy worker is disarmed.
pub(crate) async fn claim_and_listen(shared: &Shared, demands: &[Demand]) -> Result<ClaimAnswer> {
    let mut lanes: Vec<LaneId> = demands.iter().flat_map(|demand| demand.lanes.iter().copied()).collect();
    lanes.sort_unstable();
    lanes.dedup();
    if let Some(answer) = claim_by_offer(shared, demands, &lanes) {
        return Ok(answer);
    }
    let (mut answer, owes_look) = claim_admitted(shared, demands).await?;
    // The tasks go first. The worker claims again at once, looks then, and arms or disarms the doorbell then.
    if owes_look || !shared.doorbell.is_listening() {
        return Ok(answer);
    }
    let is_busy = answer.rest == Rest::More;
    // Many notifications cost more than looks: while each look finds tasks the doorbell stays disarmed.
    if is_busy || (shared.doorbell.is_notified_often() && !answer.tasks.is_empty()) {
        shared.offers.withdraw();
        disarm(shared, &lanes).await;
        answer.rest = Rest::More;
        return Ok(answer);
    }
    let armed = async { shared.doorbell.arm(&mut shared.claims.session().await?, &lanes).await };
    match armed.await {
        Ok(true) => answer = once_more(shared, demands, answer).await?,
        Ok(false) => {}
        Err(error) => {
            tracing::debug!(%error, "the doorbell could not be armed; the poll finds what comes");
            return Ok(answer);
        }
    }
    if answer.rest == Rest::Nothing && answer.tasks.is_empty() {
        lay_offer(shared, demands);
    }
    Ok(answer)
}

/// The tasks that an offer of this worker brought. No statement is sent: the caller's time limit may be
/// short.
fn claim_by_offer(shared: &Shared, demands: &[Demand], lanes: &[LaneId]) -> Option<ClaimAnswer> {
    let [demand] = demands else { return None };
    let tasks = shared.offers.bring(demand);
    let now = tasks.last()?.claimed_at;
    let is_full = tasks.len() as i64 >= wanted(demand);
    let took = Took { tasks, has_started: false };
    let mut answer = Found::unseen(shared, demand, now, took).answer;
    if answer.rest == Rest::Nothing {
        if shared.looks.is_hinted() || !shared.doorbell.covers(&numbers(lanes)) {
            // There are more tasks: otherwise this process would not have been hinted.
            answer.rest = Rest::More;
        } else {
            lay_offer(shared, demands);
        }
    } else if is_full {
        // The worker may not claim again for a while.
        shared.offers.disarm(lanes.to_vec());
    }
    Some(answer)
}

/// Offers to take the next task for an idle worker whose claim found nothing.
fn lay_offer(shared: &Shared, demands: &[Demand]) {
    if let [demand] = demands
        && demand.waits
    {
        shared.offers.lay(demand);
    }
}

/// Claims. If a gate has work, admission runs, and what it made ready is claimed too. Answers also whether a
/// look is owed.
async fn claim_admitted(shared: &Shared, demands: &[Demand]) -> Result<(ClaimAnswer, bool)> {
    let Found { mut answer, has_todo, has_started, owes_look, .. } =
        claim(shared, demands, Waiting::Sort).await?;
    let is_short = answer.rest != Rest::More;
    // The start of a task of a job with a delay is recorded before that task can end.
    if has_started || (has_todo && is_short) {
        let report = admit::admit_after(shared).await;
        answer.next_due = answer.next_due.into_iter().chain(report.next_due).min();
    } else if has_todo {
        shared.admission.wake();
    }
    if has_todo && is_short {
        answer = once_more(shared, demands, answer).await?;
    }
    Ok((answer, owes_look))
}

/// Claims what is still wanted.
async fn once_more(shared: &Shared, demands: &[Demand], mut answer: ClaimAnswer) -> Result<ClaimAnswer> {
    let taken = |worker| answer.tasks.iter().filter(|task| task.worker == worker).count() as u32;
    let left: Vec<Demand> = demands
        .iter()
        .map(|demand| Demand { n: demand.n.saturating_sub(taken(demand.worker)), ..demand.clone() })
        .collect();
    match claim(shared, &left, Waiting::Leave).await {
        Ok(Found { answer: more, .. }) => {
            answer.tasks.extend(more.tasks);
            answer.next_due = more.next_due.or(answer.next_due);
            (answer.rest, answer.now) = (more.rest, more.now);
            Ok(answer)
        }
        Err(error) if answer.tasks.is_empty() => Err(error),
        // What was claimed first must not be lost. If the second claim took tasks, the next comparison of
        // leases finds them.
        Err(error) => {
            tracing::debug!(%error, "the second claim failed");
            Ok(answer)
        }
    }
}

/// Serves all demands or, if a worker may not claim, none.
async fn claim(shared: &Shared, demands: &[Demand], waiting: Waiting) -> Result<Found> {
    let mut in_doubt = InDoubt { shared, is_over: false };
    let mut found = serve(shared, demands, waiting).await;
    if matches!(found, Err(Error::WorkerExpired)) {
        // Or the server crashed: then it lets no worker claim until the next epoch has begun.
        epoch::begin_if_forgotten(shared).await?;
        found = serve(shared, demands, waiting).await;
    }
    in_doubt.is_over = found.is_ok();
    if let Ok(found) = &found {
        epoch::begin_if_used_up(shared, &found.answer).await;
    }
    found
}

/// A claim that failed or was dropped on its way may have taken tasks and handed them back: these are behind
/// the read positions. So the next claim reads from the heads.
struct InDoubt<'a> {
    shared: &'a Shared,
    is_over: bool,
}

impl Drop for InDoubt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.read_positions().forget();
        }
    }
}

async fn serve(shared: &Shared, demands: &[Demand], waiting: Waiting) -> Result<Found> {
    for demand in demands {
        shared.comparisons.claims(demand.worker, demand.claim_no);
    }
    let mut session = shared.claims.session().await?;
    match demands {
        [] => {
            let now = session.row(&sql::NOW, &[]).await?.map_or(0, |row| row.get(0));
            Ok(Found::new(Vec::new(), Rest::More, None, Timestamp::from_ms(now)))
        }
        [demand] => Ok(answer(shared, vec![alone(shared, &mut session, demand, waiting).await?])),
        demands => Ok(answer(shared, together::claim(shared, &mut session, demands, waiting).await?)),
    }
}

/// One demand: takes, and looks where tasks are not expected, where the take brought nothing, or where a look
/// is due.
async fn alone(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    waiting: Waiting,
) -> Result<Found> {
    let n = wanted(demand);
    if shared.looks.begin() && n > 0 {
        let start = shared.start(&demand.lanes);
        let took = take(shared, session, demand, &start, n, Suspects::First).await?;
        if let Some(now) = took.tasks.first().map(|task| task.claimed_at) {
            return Ok(Found::unseen(shared, demand, now, took));
        }
    }
    let start = shared.start(&demand.lanes);
    let view = look(shared, session, demand, &start).await?;
    if !view.is_live {
        return Err(Error::WorkerExpired);
    }
    if view.has_suspects {
        let found = together::claim(shared, session, std::slice::from_ref(demand), waiting).await?;
        return found.into_iter().next().ok_or_else(|| row::unreadable("a claim without an answer"));
    }
    let took = if view.has_ready && n > 0 {
        take(shared, session, demand, &start, n, Suspects::First).await?
    } else {
        shared.read_positions().ended(&start, std::iter::empty(), true, shared.now());
        Took::default()
    };
    let found = Found::seen(demand, &view, took);
    shared.looks.ended(found.answer.rest == Rest::More);
    Ok(found)
}

/// The answer to several demands. It tells why any of them got fewer tasks than it asked for.
fn answer(shared: &Shared, found: Vec<Found>) -> Found {
    let mut all = Found::new(Vec::new(), Rest::More, None, Timestamp::from_ms(0));
    for part in found {
        let (answer, more) = (&mut all.answer, part.answer);
        answer.rest = match (answer.rest, more.rest) {
            (Rest::Blocked, _) | (_, Rest::Blocked) => Rest::Blocked,
            (Rest::Nothing, _) | (_, Rest::Nothing) => Rest::Nothing,
            (Rest::More, Rest::More) => Rest::More,
        };
        answer.next_due = more.next_due.or(answer.next_due);
        answer.now = more.now;
        if answer.tasks.is_empty() {
            answer.tasks = more.tasks;
        } else {
            answer.tasks.extend(more.tasks);
        }
        all.has_todo |= part.has_todo;
        all.has_started |= part.has_started;
        all.owes_look |= part.owes_look;
        if part.lanes.is_some_and(|in_use| !shared.lanes.are_complete(in_use)) {
            shared.lanes.mark_stale();
            shared.subscribers.tell_lanes();
        }
    }
    all
}
