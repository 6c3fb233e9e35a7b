//! The work of the leader, which only one process does: retention, the parts of the history, figures. The
//! database gives the leader a term, and every write checks that term: a leader that was away too long writes
//! nothing.

use std::time::{Duration, Instant};

use windlass_core::{Error, Result, Timestamp, source::DutyReport, store::Retention};

use crate::{
    connection::{
        conn::Param,
        error::Failure,
        options::{Clock, History},
        pool::Session,
        repeat::repeat,
        sync::Pause,
        values::{Cells, ms},
    },
    gates::job,
    shared::Shared,
    sql::{self, Sql},
    upkeep::{depth, history, lane_look, vacuum},
};

/// How long a term lasts unless the leader extends it.
const TERM: Duration = Duration::from_secs(15);
/// Rows that one statement removes.
pub(crate) const CHUNK_ROWS: i64 = 500;
/// How long one step may take before it leaves the rest to the next step.
const STEP_MAX: Duration = Duration::from_millis(200);
/// How often the history is measured while it is small enough.
const MEASURE_EVERY: Duration = Duration::from_secs(30);
/// How often jobs and lanes are checked against their tasks.
const CHECK_GATES_EVERY: Duration = Duration::from_secs(10);
/// How long workers are shown after they left or died.
const TOMBSTONE_AGE: Duration = Duration::from_hours(24);
/// When to look again at a key whose task is still kept.
const KEY_AGAIN: Duration = Duration::from_hours(1);
/// With history off, tasks that were awaited or left an output are kept for this long.
const AWAITED_AGE: Duration = crate::operate::awaited::KEPT_FOR;

/// Which process leads, as far as this process knows, and which of the leader's duties rest.
pub(crate) struct Leadership {
    /// Another process leads, and this one does not ask.
    is_led: Pause,
    /// This process leads.
    leads: Pause,
    /// The history was found to be small enough.
    history: Pause,
    gates: Pause,
    /// The two looks at the lanes.
    pub lanes_missed: Pause,
    pub lanes_used: Pause,
    pub depths: depth::Pace,
}

/// A term in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    pub number: i64,
    pub now: Timestamp,
}

/// What one look found to do.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the answer")]
struct Due {
    dead: bool,
    keys: bool,
    tombstones: bool,
    awaited: bool,
    rest: bool,
    old_parts: bool,
    parts: bool,
    sessions: bool,
}

/// One bounded step of everything that only the leader does; nothing if another one leads.
pub(crate) async fn retain(shared: &Shared, retention: &Retention) -> Result<DutyReport> {
    let mut report = DutyReport::default();
    let age = match shared.options.history {
        History::Kept => retention.history_age,
        History::Off => AWAITED_AGE,
    };
    let Some((term, due)) = lead(shared, retention, age).await? else { return Ok(report) };
    let started = Instant::now();
    let is_late = || started.elapsed() >= STEP_MAX;
    // A duty that is skipped asks for another step. No duty is skipped before the step has removed something:
    // so there is progress on a slow server too.
    let gives_way = |report: &mut DutyReport| {
        let gives_way = report.moved > 0 && is_late();
        report.more |= gives_way;
        gives_way
    };
    if due.parts {
        history::make_parts(shared, term).await?;
    }
    if due.old_parts {
        report.moved += history::drop_old(shared, term, term.now.before(age)).await?;
    }
    let cutoff = |age: Duration| term.now.before(age).as_ms();
    let (now, ended, died) = (term.now.as_ms(), cutoff(age), cutoff(retention.dead_age));
    let (left, ttl, again) = (cutoff(TOMBSTONE_AGE), shared.key_ttl_ms(), ms(KEY_AGAIN));
    // Whether there is work, whether it removes tasks, and how.
    let duties: [(bool, bool, &'static Sql, &[Param<'_>]); 7] = [
        (due.rest, true, &sql::DELETE_REST, &[&ended, &CHUNK_ROWS]),
        (history::goes_row_by_row(age), true, &sql::DELETE_HISTORY, &[&ended, &CHUNK_ROWS]),
        (due.dead, true, &sql::DELETE_DEAD, &[&died, &CHUNK_ROWS, &ttl]),
        (due.keys, false, &sql::DELETE_KEYS, &[&now, &CHUNK_ROWS, &again]),
        (due.tombstones, false, &sql::DELETE_TOMBSTONES, &[&left, &CHUNK_ROWS]),
        (due.sessions, false, &sql::DELETE_SESSIONS, &[&now, &CHUNK_ROWS]),
        (due.awaited, false, &sql::DELETE_AWAITED, &[&now, &CHUNK_ROWS]),
    ];
    for (is_due, removes_tasks, statement, params) in duties {
        if is_due && !gives_way(&mut report) {
            let (n, more) = remove(shared, term, statement, params).await?;
            report.moved += if removes_tasks { n } else { 0 };
            report.more |= more;
        }
    }
    if !gives_way(&mut report) {
        let (moved, more) = history::keep_small(shared, term, retention.history_max_bytes).await?;
        report.moved += moved;
        report.more |= more;
    }
    vacuum::look(shared).await?;
    depth::count(shared, term).await?;
    lane_look::look(shared, term).await?;
    // Room that is unused, and lanes that became live or stopped being live during an admission.
    if shared.leadership.gates.turn(CHECK_GATES_EVERY) {
        job::check_gates(shared).await;
    }
    Ok(report)
}

/// Asks to lead. One statement, which also finds out whether there is work to do.
async fn lead(shared: &Shared, retention: &Retention, age: Duration) -> Result<Option<(Term, Due)>> {
    let leadership = &shared.leadership;
    if !leadership.is_led.is_over() {
        return Ok(None);
    }
    let (term_ms, dead_age, age) = (ms(TERM), ms(retention.dead_age), ms(age));
    let ahead = ms(history::AHEAD);
    let asked_at = leadership.leads.now();
    let row = shared
        .duties
        .row(&sql::LEAD, &[&shared.doorbell.listener, &term_ms, &dead_age, &age, &ahead])
        .await?
        .ok_or_else(|| Error::Unavailable("there is no row of the leader".to_owned()))?;
    let Some(number) = row.get::<_, Option<i64>>(0) else {
        let led_for = Duration::from_millis(row.number(1));
        leadership.is_led.begin(led_for.min(TERM));
        return Ok(None);
    };
    leadership.is_led.end();
    leadership.leads.until(asked_at + TERM);
    let due = Due {
        dead: row.get(3),
        keys: row.get(4),
        tombstones: row.get(5),
        awaited: row.get(6),
        rest: row.get(7),
        old_parts: row.get(8),
        parts: row.get(9),
        sessions: row.get(10),
    };
    Ok(Some((Term { number, now: row.time(2) }, due)))
}

impl Leadership {
    pub(crate) fn new(clock: &Clock) -> Self {
        let pause = || Pause::new(clock);
        Self {
            is_led: pause(),
            leads: pause(),
            history: pause(),
            gates: pause(),
            lanes_missed: Pause::new(clock),
            lanes_used: Pause::new(clock),
            depths: depth::Pace::new(clock),
        }
    }

    /// Whether this process leads, as far as it knows.
    pub(crate) fn leads(&self) -> bool {
        !self.leads.is_over()
    }

    /// Whether the history should be measured.
    pub(crate) fn must_measure(&self) -> bool {
        self.history.is_over()
    }

    /// The history was measured, and is small enough.
    pub(crate) fn measured(&self) {
        self.history.begin(MEASURE_EVERY);
    }
}

/// Opens a transaction that lasts no longer than the term; `false` if the term has ended.
pub(crate) async fn hold(shared: &Shared, session: &mut Session<'_>, term: Term) -> Result<bool, Failure> {
    session.begin().await?;
    let held = session.row(&sql::HOLD_TERM, &[&term.number, &shared.doorbell.listener]).await?;
    if held.is_none() {
        session.rollback().await;
    }
    Ok(held.is_some())
}

/// Removes a chunk of rows; answers how many, and whether there may be more.
pub(crate) async fn remove(
    shared: &Shared,
    term: Term,
    statement: &'static Sql,
    params: &[Param<'_>],
) -> Result<(u64, bool)> {
    let rows = repeat(|| async {
        let mut session = shared.duties.session().await?;
        if !hold(shared, &mut session, term).await? {
            return Ok(Vec::new());
        }
        let rows = session.query(statement, params).await?;
        session.commit().await?;
        Ok(rows)
    })
    .await?;
    // Most of these statements answer with a row for each removed row; that of the keys answers with a count.
    let is_counted = std::ptr::eq(statement, &raw const sql::DELETE_KEYS);
    let n = if is_counted { rows.first().map_or(0, |row| row.get::<_, i64>(0)) } else { rows.len() as i64 };
    Ok((n as u64, n >= CHUNK_ROWS))
}
