//! The turns of jobs: what their locked rows show, what is decided about them, and what happens to their
//! tasks.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{
    JobState, Result, State, Timestamp,
    gate::{JobView, Turn, turn, window},
};

use crate::{
    connection::{
        error::Failure,
        pool::Session,
        values::{Cells, narrow},
    },
    gates::{
        admit::{Admitted, Todo, put_jobs},
        job,
    },
    shared::Shared,
    sql,
};

/// How many rounds one transaction gives its jobs before it leaves the rest to the next transaction.
const ROUNDS_MAX: usize = 50;
/// Held tasks that are read beyond those that there is room for: some of them may be in lanes without a
/// worker.
const AHEAD: i64 = 500;

/// A job as its lock shows it.
struct Locked {
    state: JobState,
    concurrency: Option<u32>,
    delay: Option<std::time::Duration>,
    last_start: Option<Timestamp>,
    recount: bool,
    at_limit: bool,
    gone_before: Option<i64>,
}

impl Locked {
    fn of(row: &tokio_postgres::Row) -> Self {
        let ms = |ms: i64| std::time::Duration::from_millis(ms.max(0) as u64);
        Self {
            state: row.job_state(1),
            concurrency: row.get::<_, Option<i32>>(2).map(|n| n.max(0) as u32),
            delay: row.get::<_, Option<i64>>(3).map(ms),
            last_start: row.time_if_any(4),
            recount: row.get(5),
            at_limit: row.get(6),
            gone_before: row.get(7),
        }
    }
}

/// Locks jobs inside the session's transaction. If some have no row yet, rows are made, and the transaction
/// must begin anew.
async fn lock(
    shared: &Shared,
    session: &mut Session<'_>,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, Locked>, Failure> {
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let limit = shared.rules.job_default_concurrency.map(narrow);
    let rows = session.query(&sql::JOB_LOCK, &[&wanted]).await?;
    if rows.len() == names.len() {
        return Ok(rows.iter().map(|row| (row.get(0), Locked::of(row))).collect());
    }
    // Rows are made while no job is locked: two transactions that each hold some jobs and make others would
    // wait for each other.
    session.rollback().await;
    session.query(&sql::JOB_MAKE, &[&wanted, &limit]).await?;
    Err(Failure::outrun("jobs were made or forgotten meanwhile; try again".to_owned()))
}

/// Locks jobs, makes held tasks ready where there is room, and holds ready tasks again where there is none.
pub(crate) async fn give_turns(
    shared: &Shared,
    session: &mut Session<'_>,
    todo: &Todo,
    admitted: &mut Admitted,
) -> Result<(), Failure> {
    let names: BTreeSet<String> = todo.jobs.iter().chain(todo.freed.keys()).cloned().collect();
    if names.is_empty() {
        return Ok(());
    }
    let jobs = lock(shared, session, &names).await?;
    let mut round = Round::new(jobs, &todo.started);
    round.pass_on(session, todo, admitted).await?;
    for _ in 0..ROUNDS_MAX {
        if round.open.is_empty() {
            break;
        }
        round.look(session, admitted).await?;
    }
    if !round.open.is_empty() {
        put_jobs(session, round.open.iter().map(String::as_str)).await?;
    }
    round.note(session, admitted).await
}

/// Jobs of which a held task outranks a ready one. A held task of a lane without a worker would take the
/// ready task's place in the line for nothing, so such tasks are put aside first.
async fn outranked(
    session: &mut Session<'_>,
    jobs: &[&str],
    admitted: &mut Admitted,
) -> Result<Vec<String>, Failure> {
    let mut jobs: Vec<String> = jobs.iter().map(|name| (*name).to_owned()).collect();
    loop {
        let rows = session.query(&sql::JOB_OUTRANKED, &[&jobs]).await?;
        jobs = rows.iter().map(|row| row.get(0)).collect();
        if jobs.is_empty() || session.query(&sql::JOB_PARK, &[&jobs, &AHEAD]).await?.is_empty() {
            return Ok(jobs);
        }
        admitted.has_parked = true;
    }
}

/// The jobs of one transaction. Rounds repeat until each job has what its limit allows.
struct Round<'a> {
    jobs: BTreeMap<String, Locked>,
    started: &'a BTreeSet<String>,
    rounds: usize,
    /// Jobs that are not decided yet.
    open: BTreeSet<String>,
    /// How many tasks of each job are ready, and how many run.
    taken: BTreeMap<String, (u32, u32)>,
    noted: BTreeSet<String>,
    again: BTreeMap<String, Timestamp>,
    forgotten: Vec<String>,
}

/// What one round does.
#[derive(Default)]
struct Plan {
    promote: Vec<(String, i64, bool)>,
    demote: Vec<(String, i64)>,
    /// Jobs with no room and something ready: a held task may outrank it.
    full: Vec<String>,
}

impl<'a> Round<'a> {
    fn new(jobs: BTreeMap<String, Locked>, started: &'a BTreeSet<String>) -> Self {
        let open = jobs.keys().cloned().collect();
        Self {
            jobs,
            started,
            rounds: 0,
            open,
            taken: BTreeMap::new(),
            noted: BTreeSet::new(),
            again: BTreeMap::new(),
            forgotten: Vec::new(),
        }
    }

    /// Passes each freed place on to the next task of the same job, without counting. The tasks that are
    /// ready, run or are about to get a freed place never exceed the limit. A job for which `gate_todo` says
    /// anything else stays open, and is counted.
    async fn pass_on(
        &mut self,
        session: &mut Session<'_>,
        todo: &Todo,
        admitted: &mut Admitted,
    ) -> Result<(), Failure> {
        let is_plain = |name: &&String| {
            !todo.jobs.contains(*name)
                && self
                    .jobs
                    .get(*name)
                    .is_some_and(|job| job.state == JobState::Active && !job.recount && job.delay.is_none())
        };
        let names: Vec<&String> = todo.freed.keys().filter(is_plain).collect();
        let wanted: Vec<(String, i64, bool)> =
            names.iter().filter_map(|name| Some(((*name).clone(), *todo.freed.get(*name)?, false))).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        for (name, ..) in &wanted {
            self.open.remove(name);
        }
        let mut promoted = self.promote(session, &wanted, admitted).await?;
        for (name, n, _) in wanted {
            let is_full = promoted.remove(&name).unwrap_or(0) >= n;
            // A job with too few held tasks is no longer at its limit. A job that met a lane without a worker
            // is open again.
            if !is_full && self.jobs.get(&name).is_some_and(|job| job.at_limit) {
                self.open.insert(name);
            }
        }
        Ok(())
    }

    async fn look(&mut self, session: &mut Session<'_>, admitted: &mut Admitted) -> Result<(), Failure> {
        self.rounds += 1;
        let mut plan = self.count(session, admitted).await?;
        self.open.clear();
        if !plan.full.is_empty() {
            let full: Vec<&str> = plan.full.iter().map(String::as_str).collect();
            let outranked = outranked(session, &full, admitted).await?;
            plan.demote.extend(outranked.into_iter().map(|name| (name, 1)));
        }
        if !plan.demote.is_empty() {
            plan.demote.sort();
            let names: Vec<&str> = plan.demote.iter().map(|(name, _)| name.as_str()).collect();
            let ns: Vec<i64> = plan.demote.iter().map(|(_, n)| *n).collect();
            admitted.moved += session.query(&sql::JOB_DEMOTE, &[&names, &ns]).await?.len() as u64;
            // Some tasks may have been claimed meanwhile: count these jobs again.
            self.open.extend(plan.demote.into_iter().map(|(name, _)| name));
        }
        if !plan.promote.is_empty() {
            let promoted = self.promote(session, &plan.promote, admitted).await?;
            self.reopen_outranked(session, &plan.promote, &promoted, admitted).await?;
        }
        Ok(())
    }

    /// Opens the jobs whose last place was just given away again if a held task outranks a task that was
    /// ready before.
    async fn reopen_outranked(
        &mut self,
        session: &mut Session<'_>,
        wanted: &[(String, i64, bool)],
        promoted: &BTreeMap<String, i64>,
        admitted: &mut Admitted,
    ) -> Result<(), Failure> {
        let had_ready =
            |name: &str, n: i64| self.taken.get(name).is_some_and(|(ready, _)| i64::from(*ready) > n);
        let is_full = |name: &str, n: i64| promoted.get(name).is_some_and(|promoted| *promoted >= n);
        let full = wanted.iter().filter(|(name, n, _)| is_full(name, *n) && had_ready(name, *n));
        let full: Vec<&str> = full.map(|(name, ..)| name.as_str()).collect();
        if !full.is_empty() {
            self.open.extend(outranked(session, &full, admitted).await?);
        }
        Ok(())
    }

    /// Counts which tasks have the room of the open jobs, and decides.
    async fn count(&mut self, session: &mut Session<'_>, admitted: &mut Admitted) -> Result<Plan, Failure> {
        let names: Vec<&str> = self.open.iter().map(String::as_str).collect();
        let of = |name: &&str| self.jobs.get(*name);
        let delays: Vec<bool> =
            names.iter().map(|name| of(name).is_some_and(|job| job.delay.is_some())).collect();
        let gone: Vec<Option<i64>> =
            names.iter().map(|name| of(name).and_then(|job| job.gone_before)).collect();
        let rows = session.query(&sql::JOB_COUNT, &[&names, &delays, &gone]).await?;
        let mut plan = Plan::default();
        for row in &rows {
            let name: String = row.get(0);
            let Some(job) = self.jobs.get_mut(&name) else { continue };
            let small = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
            let (ready, running) = (small(row.get(1)), small(row.get(2)));
            let (is_noted_elsewhere, has_old): (bool, bool) = (row.get(3), row.get(4));
            let (slots, now) = (small(row.get(5)), row.time(6));
            let running = running.saturating_add(small(row.get(7)));
            if job.delay.is_some() && self.started.contains(&name) && self.noted.insert(name.clone()) {
                job.last_start = Some(now);
            }
            self.taken.insert(name.clone(), (ready, running));
            match job.state {
                JobState::Cancelled => {
                    admitted.to_cancel.push((name.clone(), i64::MAX, job::cancelled_reason(&name)));
                }
                JobState::Removing if has_old => {
                    let up_to = job.gone_before.unwrap_or(i64::MAX);
                    admitted.to_cancel.push((name.clone(), up_to, job::removed_reason(&name)));
                }
                JobState::Removing => self.forgotten.push(name.clone()),
                JobState::Active | JobState::Paused => {}
            }
            let view = JobView {
                state: job.state,
                concurrency: job.concurrency,
                delay: job.delay,
                last_start: job.last_start,
                ready,
                running,
            };
            let mut turn = turn(&view, window(slots), now);
            if is_noted_elsewhere {
                // The transaction that recorded that start decides when the next may follow.
                turn = Turn { demote: turn.demote, ..Turn::default() };
            }
            if let Some(at) = turn.again_at {
                self.again.insert(name.clone(), at);
            }
            if turn.demote > 0 {
                plan.demote.push((name, i64::from(turn.demote)));
            } else if turn.promote > 0 && slots == 0 {
                // There is no worker to take a task. When the first worker registers, admission looks at all
                // jobs.
            } else if turn.promote > 0 {
                plan.promote.push((name, i64::from(turn.promote), job.delay.is_some()));
            } else if job.state == JobState::Active && ready > 0 {
                plan.full.push(name);
            }
        }
        Ok(plan)
    }

    async fn promote(
        &mut self,
        session: &mut Session<'_>,
        wanted: &[(String, i64, bool)],
        admitted: &mut Admitted,
    ) -> Result<BTreeMap<String, i64>, Failure> {
        let names: Vec<&str> = wanted.iter().map(|(name, ..)| name.as_str()).collect();
        let ns: Vec<i64> = wanted.iter().map(|(_, n, _)| *n).collect();
        let delays: Vec<bool> = wanted.iter().map(|(.., delay)| *delay).collect();
        if self.rounds > 1 {
            // A job that met a task of a lane without a worker often has more of them.
            let most = ns.iter().max().copied().unwrap_or(0) + AHEAD;
            admitted.has_parked |= !session.query(&sql::JOB_PARK, &[&names, &most]).await?.is_empty();
        }
        let mut promoted = BTreeMap::new();
        for row in &session.query(&sql::JOB_PROMOTE, &[&names, &ns, &delays]).await? {
            let name: String = row.get(0);
            if i64::from(row.get::<_, i16>(2)) == State::Ready.code() {
                admitted.moved += 1;
                admitted.lanes_ready.push(row.lane(1));
                if let Some((ready, _)) = self.taken.get_mut(&name) {
                    *ready += 1;
                }
                *promoted.entry(name).or_default() += 1;
            } else {
                // That lane has no live worker: the next task may have the place.
                self.open.insert(name);
                admitted.has_parked = true;
            }
        }
        Ok(promoted)
    }

    /// Writes what changed in the rows of the jobs.
    async fn note(self, session: &mut Session<'_>, admitted: &mut Admitted) -> Result<(), Failure> {
        let (mut names, mut recounts, mut at_limits, mut starts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, job) in &self.jobs {
            let Some((ready, running)) = self.taken.get(name) else { continue };
            let taken = ready.saturating_add(*running);
            let recount = job.concurrency.is_some_and(|limit| taken > limit);
            let at_limit =
                job.state == JobState::Active && job.concurrency.is_some_and(|limit| taken >= limit);
            if recount != job.recount || at_limit != job.at_limit || self.noted.contains(name) {
                names.push(name.as_str());
                recounts.push(recount);
                at_limits.push(at_limit);
                starts.push(job.last_start.map(Timestamp::as_ms));
            }
            if at_limit != job.at_limit {
                admitted.edges.push((name.clone(), at_limit, job.concurrency.unwrap_or(0)));
            }
        }
        if !names.is_empty() {
            session.query(&sql::JOB_NOTE, &[&names, &recounts, &at_limits, &starts]).await?;
        }
        if !self.again.is_empty() {
            let names: Vec<&str> = self.again.keys().map(String::as_str).collect();
            let times: Vec<i64> = self.again.values().map(|at| at.as_ms()).collect();
            session.query(&sql::TODO_LATER, &[&names, &times]).await?;
            for at in self.again.values() {
                admitted.due(*at);
            }
        }
        if !self.forgotten.is_empty() {
            session.query(&sql::JOB_FORGET, &[&self.forgotten]).await?;
        }
        Ok(())
    }
}
