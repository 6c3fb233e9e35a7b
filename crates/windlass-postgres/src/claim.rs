//! Claim: ready tasks become leases of a worker, in one statement that commits by itself.
//!
//! Suspects of a crash take a longer way, in a transaction (see [`crate::suspect`]).

use windlass_core::{
    ClaimAnswer, Claimed, Demand, Error, LaneId, Result, Timestamp, affinity::hand_over,
    crash::QUIET_PER_CRASH, source::Rest,
};

use crate::{
    cursor::Stretches,
    doorbell::numbers,
    doubt::Doubt,
    epoch, gate,
    looks::Way,
    pool::Session,
    shared::Shared,
    short::{self, Seen},
    sql::{self, Sql},
    suspect::{Waiting, last_chance, stand_aside, take_suspects},
    taken::{read, unreadable},
};

/// Most tasks that one demand may take.
const CLAIM_MAX: u32 = 10_000;
/// Columns before those of a task in an answer that also says how things stand.
pub(crate) const HEAD: usize = 9;

/// What one demand brought.
#[expect(clippy::struct_excessive_bools, reason = "each is a word of the answer")]
pub(crate) struct Brought {
    pub tasks: Vec<Claimed>,
    pub rest: Rest,
    pub next_due: Option<Timestamp>,
    pub now: Timestamp,
    /// How many lanes there are, if the claim looked.
    pub lanes: Option<usize>,
    pub has_todo: bool,
    pub has_started: bool,
    /// A suspect on its last chance has the worker to itself.
    pub is_isolated: bool,
    /// How things stand was not looked at, and the last look is a while ago.
    pub owes_look: bool,
}

impl Brought {
    /// Nothing yet: the caller must look at the gates first.
    fn gates_first() -> Self {
        Self {
            tasks: Vec::new(),
            rest: Rest::Nothing,
            next_due: None,
            now: Timestamp::from_ms(0),
            lanes: None,
            has_todo: true,
            has_started: false,
            is_isolated: false,
            owes_look: false,
        }
    }

    /// The same answer for another worker, whom it brought nothing.
    fn without_tasks(&self) -> Self {
        Self { tasks: Vec::new(), has_started: false, is_isolated: false, ..*self }
    }
}

/// What the head of an answer says of the claim as a whole.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the answer")]
struct Verdict {
    now: Timestamp,
    is_live: bool,
    /// A suspect on its last chance has the worker to itself.
    is_isolated: bool,
    /// A suspect wants to be looked at first.
    has_suspects: bool,
    is_blocked: bool,
    next_due: Option<Timestamp>,
    lanes: Option<usize>,
    /// A gate is to be looked at.
    has_todo: bool,
    /// A task of a job with a delay was taken.
    has_started: bool,
}

/// Claims; a worker that goes idle arms its bell and claims once more, so that nothing that came in between is missed, and offers to take
/// what comes next. A worker that is busy is not to be rung.
pub(crate) async fn claim_and_listen(shared: &Shared, demands: &[Demand]) -> Result<ClaimAnswer> {
    let mut lanes: Vec<LaneId> = demands.iter().flat_map(|demand| demand.lanes.iter().copied()).collect();
    lanes.sort_unstable();
    lanes.dedup();
    // Nothing is waited for with what an offer brought: whoever asked may not wait as long.
    if let Some(mut answer) = short::by_offer(shared, demands) {
        if answer.rest == Rest::Nothing {
            if shared.looks.are_told() || !shared.doorbell.covers(&numbers(&lanes)) {
                // There is more, or nobody would be told of it.
                answer.rest = Rest::More;
            } else {
                offer(shared, demands);
            }
        } else if answer.tasks.len() as i64 >= demands.iter().map(wanted).sum() {
            // It may not come again for a while.
            shared.offers.disarm(lanes);
        }
        return Ok(answer);
    }
    let (mut answer, owes_look) = claim_admitted(shared, demands).await?;
    // The tasks first: their worker comes again at once, and with what is found then the bell is seen to.
    if owes_look || !shared.doorbell.is_listening() {
        return Ok(answer);
    }
    let is_busy = answer.rest == Rest::More;
    // Rings that come thick cost more than looking: as long as each look brings something the bell stays off.
    if is_busy || (shared.doorbell.is_rung_thickly() && !answer.tasks.is_empty()) {
        shared.offers.withdraw();
        // What was claimed must not be lost for this.
        let disarmed = async { shared.doorbell.disarm(&mut shared.claims.session().await?, &lanes).await };
        if let Err(error) = disarmed.await {
            tracing::debug!(%error, "the bell could not be disarmed");
        }
        answer.rest = Rest::More;
        return Ok(answer);
    }
    let armed = async { shared.doorbell.arm(&mut shared.claims.session().await?, &lanes).await };
    match armed.await {
        Ok(true) => answer = once_more(shared, demands, answer).await?,
        Ok(false) => {}
        Err(error) => {
            tracing::debug!(%error, "the bell could not be armed; the poll finds what comes");
            return Ok(answer);
        }
    }
    if answer.rest == Rest::Nothing && answer.tasks.is_empty() {
        offer(shared, demands);
    }
    Ok(answer)
}

/// Offers to take the next task for a worker that waits, and whose claim took nothing from the line.
fn offer(shared: &Shared, demands: &[Demand]) {
    if let [demand] = demands
        && demand.waits
        && shared.options.trusts_hearsay
    {
        shared.offers.lay(demand);
    }
}

/// Claims; whatever the gates are to be looked at for is looked at, and what that made ready is claimed too. Answers also
/// whether a look at how things stand is owed.
async fn claim_admitted(shared: &Shared, demands: &[Demand]) -> Result<(ClaimAnswer, bool)> {
    let Served { mut answer, has_todo, has_started, owes_look } =
        claim(shared, demands, Waiting::Sort).await?;
    let is_short = answer.rest != Rest::More;
    // A start that is to be noticed is noticed before its task can end.
    if has_started || (has_todo && is_short) {
        let report = gate::admit_after(shared).await;
        answer.next_due = answer.next_due.into_iter().chain(report.next_due).min();
    } else if has_todo {
        shared.admission.wake();
    }
    if has_todo && is_short {
        answer = once_more(shared, demands, answer).await?;
    }
    Ok((answer, owes_look))
}

/// The answer to a claim, and what it saw at the gates.
struct Served {
    answer: ClaimAnswer,
    has_todo: bool,
    has_started: bool,
    owes_look: bool,
}

/// Claims what is still wanted after the bell was armed.
async fn once_more(shared: &Shared, demands: &[Demand], mut answer: ClaimAnswer) -> Result<ClaimAnswer> {
    let taken = |worker| answer.tasks.iter().filter(|task| task.worker == worker).count() as u32;
    let left: Vec<Demand> = demands
        .iter()
        .map(|demand| Demand { n: demand.n.saturating_sub(taken(demand.worker)), ..demand.clone() })
        .collect();
    match claim(shared, &left, Waiting::Leave).await {
        Ok(Served { answer: more, .. }) => {
            answer.tasks.extend(more.tasks);
            answer.next_due = more.next_due.or(answer.next_due);
            (answer.rest, answer.now) = (more.rest, more.now);
            Ok(answer)
        }
        Err(error) if answer.tasks.is_empty() => Err(error),
        // What was claimed first must not be lost; should the second have taken something, the next comparison of leases
        // finds it.
        Err(error) => {
            tracing::debug!(%error, "the claim after arming the bell failed");
            Ok(answer)
        }
    }
}

/// Serves all demands or, if a worker may not claim, none.
async fn claim(shared: &Shared, demands: &[Demand], waiting: Waiting) -> Result<Served> {
    let mut doubt = Doubt { shared, is_over: false };
    let mut answer = serve(shared, demands, waiting).await;
    if matches!(answer, Err(Error::WorkerExpired)) {
        // Or the server was down in a crash: then it lets no worker claim until the next epoch has begun.
        epoch::begin_if_forgotten(shared).await?;
        answer = serve(shared, demands, waiting).await;
    }
    doubt.is_over = answer.is_ok();
    if let Ok(served) = &answer {
        epoch::begin_if_used_up(shared, &served.answer).await;
    }
    answer
}

async fn serve(shared: &Shared, demands: &[Demand], waiting: Waiting) -> Result<Served> {
    let mut session = shared.claims.session().await?;
    match demands {
        [] => {
            let now = session.row(&sql::NOW, &[]).await?.map_or(0, |row| row.get(0));
            let answer = ClaimAnswer {
                tasks: Vec::new(),
                rest: Rest::More,
                next_due: None,
                now: Timestamp::from_ms(now),
            };
            Ok(Served { answer, has_todo: false, has_started: false, owes_look: false })
        }
        [demand] => Ok(answer(shared, vec![alone(shared, &mut session, demand, waiting).await?])),
        demands => {
            shared.looks.forget_named();
            let brought = together(shared, &mut session, demands, waiting).await?;
            Ok(answer(shared, brought))
        }
    }
}

/// Demands in one transaction: all or none.
async fn together(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
    waiting: Waiting,
) -> Result<Vec<Brought>> {
    let claimed = one_after_another(shared, session, demands, waiting).await;
    if claimed.is_err() {
        // Waited for: whoever claims next would skip what is still locked.
        session.rollback().await;
    }
    claimed
}

async fn one_after_another(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
    waiting: Waiting,
) -> Result<Vec<Brought>> {
    let workers: Vec<i64> = demands.iter().map(|demand| demand.worker.0).collect();
    let numbers: Vec<i64> = demands.iter().map(|demand| demand.claim_no as i64).collect();
    let locked = session.begin_with(&[(&sql::CLAIM_LOCK, &[&workers, &numbers])]).await?;
    if locked.first().is_none_or(|rows| rows.len() < demands.len()) {
        return Err(Error::WorkerExpired);
    }
    if waiting == Waiting::Sort && stand_aside(shared, session, demands).await? {
        session.commit().await?;
        return Ok(vec![Brought::gates_first()]);
    }
    let mut all: Vec<Brought> = Vec::with_capacity(demands.len());
    for (place, demand) in demands.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| demands.get(before).zip(all.last()));
        let empty = before.filter(|(before, found)| {
            before.lanes == demand.lanes && before.n > 0 && found.rest == Rest::Nothing
        });
        // Nothing was left for the one before in the same lanes, so nothing is for this one.
        let brought = match empty {
            Some((_, found)) if demand.n > 0 => found.without_tasks(),
            _ => inside(shared, session, demand).await?,
        };
        all.push(brought);
    }
    commit(shared, session, demands, &mut all).await?;
    Ok(all)
}

/// Ends the claim. Steps go to the worker of it that prefers their workflow, in the same go as the commit.
async fn commit(
    shared: &Shared,
    session: &mut Session<'_>,
    demands: &[Demand],
    all: &mut [Brought],
) -> Result<()> {
    if demands.iter().all(|demand| demand.prefers.is_nothing()) {
        return Ok(session.commit().await?);
    }
    let closed: Vec<bool> = all.iter().map(|brought| brought.is_isolated).collect();
    let mut tasks: Vec<Claimed> =
        all.iter_mut().flat_map(|brought| std::mem::take(&mut brought.tasks)).collect();
    let may_get = |place: usize| closed.get(place).is_some_and(|closed| !closed);
    let changes = hand_over(demands, &tasks, may_get);
    let (mut ids, mut workers, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        let (Some(task), Some(to)) = (tasks.get_mut(change.task), demands.get(change.to)) else { continue };
        (task.worker, task.claim_no) = (to.worker, to.claim_no);
        // It is about to be written once more.
        shared.places.forget(task.id);
        ids.push(task.id.raw());
        workers.push(to.worker.0);
        numbers.push(to.claim_no as i64);
    }
    if ids.is_empty() {
        session.commit().await?;
    } else {
        let moved = session.commit_with(&sql::CLAIM_HAND_OVER, &[&ids, &workers, &numbers]).await?;
        if moved.len() != ids.len() {
            // It is committed: whoever asked has it undone.
            return Err(Error::Unknown("a claim handed over a lease that it did not have".to_owned()));
        }
    }
    if let Some(first) = all.first_mut() {
        first.tasks = tasks;
    }
    Ok(())
}

/// One demand, in a statement of its own unless a suspect is there.
async fn alone(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    waiting: Waiting,
) -> Result<Brought> {
    // Of several lanes the short way takes less than it was asked for, or nothing.
    let least = if demand.lanes.len() < 2 { 1 } else { 2 };
    let way = if demand.n < least { Way::Long } else { shared.looks.way(demand.lanes.len(), demand.n) };
    let is_short = way != Way::Long;
    if let Some(task) = shared.looks.take_named(demand.worker).filter(|_| is_short)
        && let Some(brought) = short::by_name(shared, session, demand, task).await?
    {
        return Ok(brought);
    }
    let seen =
        if way == Way::LookThenShort { short::look_around(shared, session).await? } else { Seen::default() };
    if is_short && let Some(brought) = short::quickly(shared, session, demand).await? {
        let next_due = seen.next_due.or(brought.next_due);
        return Ok(Brought { next_due, has_todo: seen.has_todo, ..brought });
    }
    let brought = thoroughly(shared, session, demand, waiting).await?;
    shared.looks.looked(
        demand.worker,
        !brought.tasks.is_empty(),
        brought.rest == Rest::More,
        is_short,
        brought.next_due,
    );
    Ok(brought)
}

/// Takes tasks and looks how things stand.
async fn thoroughly(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    waiting: Waiting,
) -> Result<Brought> {
    let stretches = shared.stretches(&demand.lanes);
    let (verdict, tasks) = take(shared, session, demand, &stretches, wanted(demand), Suspects::First).await?;
    if !verdict.is_live {
        return Err(Error::WorkerExpired);
    }
    if !verdict.has_suspects {
        return Ok(brought(demand, &verdict, tasks));
    }
    let found = together(shared, session, std::slice::from_ref(demand), waiting).await?;
    found.into_iter().next().ok_or_else(|| unreadable("a claim without an answer"))
}

/// One demand inside a transaction that holds its worker's row, suspects first.
async fn inside(shared: &Shared, session: &mut Session<'_>, demand: &Demand) -> Result<Brought> {
    let (suspects, is_alone) = take_suspects(shared, session, demand).await?;
    // A suspect on its last chance runs alone: the claim below finds it there and takes nothing.
    let room = if is_alone { 1 } else { wanted(demand).saturating_sub(suspects.len() as i64) };
    let stretches = shared.stretches(&demand.lanes);
    let (verdict, mut tasks) = take(shared, session, demand, &stretches, room, Suspects::Aside).await?;
    if !verdict.is_live {
        return Err(Error::WorkerExpired);
    }
    tasks.splice(0..0, suspects);
    Ok(brought(demand, &verdict, tasks))
}

pub(crate) fn wanted(demand: &Demand) -> i64 {
    i64::from(demand.n.min(CLAIM_MAX))
}

fn brought(demand: &Demand, verdict: &Verdict, tasks: Vec<Claimed>) -> Brought {
    let rest = match (tasks.len() as i64) < wanted(demand) {
        false => Rest::More,
        true if verdict.is_blocked => Rest::Blocked,
        true => Rest::Nothing,
    };
    Brought {
        tasks,
        rest,
        next_due: verdict.next_due,
        now: verdict.now,
        lanes: verdict.lanes,
        has_todo: verdict.has_todo,
        has_started: verdict.has_started,
        is_isolated: verdict.is_isolated,
        owes_look: false,
    }
}

/// Several demands together: what kept any of them short is told.
fn answer(shared: &Shared, brought: Vec<Brought>) -> Served {
    let has_todo = brought.iter().any(|part| part.has_todo);
    let has_started = brought.iter().any(|part| part.has_started);
    let owes_look = brought.iter().any(|part| part.owes_look);
    let mut answer =
        ClaimAnswer { tasks: Vec::new(), rest: Rest::More, next_due: None, now: Timestamp::from_ms(0) };
    for part in brought {
        answer.rest = match (answer.rest, part.rest) {
            (Rest::Blocked, _) | (_, Rest::Blocked) => Rest::Blocked,
            (Rest::Nothing, _) | (_, Rest::Nothing) => Rest::Nothing,
            (Rest::More, Rest::More) => Rest::More,
        };
        answer.next_due = part.next_due.or(answer.next_due);
        answer.now = part.now;
        if answer.tasks.is_empty() {
            answer.tasks = part.tasks;
        } else {
            answer.tasks.extend(part.tasks);
        }
        if part.lanes.is_some_and(|n| !shared.lanes.are_complete(n)) {
            shared.lanes.mark_stale();
            shared.subscribers.tell_lanes();
        }
    }
    Served { answer, has_todo, has_started, owes_look }
}

/// What becomes of ready suspects in a plain claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspects {
    /// Nothing is taken while one wants to be looked at.
    First,
    /// They have been looked at.
    Aside,
}

async fn take(
    shared: &Shared,
    session: &mut Session<'_>,
    demand: &Demand,
    stretches: &Stretches,
    n: i64,
    suspects: Suspects,
) -> Result<(Verdict, Vec<Claimed>)> {
    let statement: &'static Sql = if demand.lanes.len() > 1 { &sql::CLAIM_MERGED } else { &sql::CLAIM };
    let (claim_no, last_chance) = (demand.claim_no as i64, last_chance(&shared.rules));
    let (isolation, aside) = (QUIET_PER_CRASH.as_millis() as i64, suspects == Suspects::Aside);
    let rows = session
        .query(
            statement,
            &[
                &demand.worker.0,
                &claim_no,
                &n,
                &stretches.lanes,
                &stretches.highs,
                &stretches.lows,
                &stretches.afters,
                &last_chance,
                &isolation,
                &aside,
            ],
        )
        .await?;
    let Some((head, taken)) = rows.split_first() else { return Err(unreadable("a claim without an answer")) };
    let verdict = Verdict {
        now: Timestamp::from_ms(head.get(0)),
        is_live: head.get(1),
        is_isolated: head.get(2),
        has_suspects: head.get(3),
        is_blocked: head.get::<_, Option<bool>>(4).unwrap_or(false),
        next_due: head.get::<_, Option<i64>>(5).map(Timestamp::from_ms),
        lanes: head.get::<_, Option<i64>>(6).map(|n| n as usize),
        has_todo: head.get(7),
        has_started: head.get(8),
    };
    let is_short = !verdict.is_isolated && !verdict.has_suspects && (taken.len() as i64) < n;
    let tasks = read(shared, demand, verdict.now, taken, HEAD, is_short).await?;
    Ok((verdict, tasks))
}
