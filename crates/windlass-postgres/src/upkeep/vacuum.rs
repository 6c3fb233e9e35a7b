//! Vacuums the tables of tasks. The server's own autovacuum looks once a minute, and a busy fleet leaves a
//! million dead rows in that time. So the leader vacuums as soon as there are enough dead rows.
//!
//! ```text
//!   retention, every few seconds ───────────────┐
//!   many tasks settled by the leader's process ─┴─► look at the server's figures ──► few dead rows: nothing
//!                                                    │ many
//!                                                    ▼
//!                     vacuum, then a look every second ──► none needed for a while: close the connection
//! ```
//!
//! A snapshot that a session holds keeps dead rows from being removed. Vacuums that remove little are
//! followed by a long pause, so that they cost a small share of the time. Autovacuum goes on as before. It
//! does all of the work where this is switched off, or where the user of the connection does not own the
//! tables.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use tokio_postgres::Row;
use windlass_core::Result;

use crate::{
    shared::{Shared, Weakly},
    sql,
};

/// Tables that every task writes to, with the number of dead rows from which on a vacuum is worth its cost.
/// Reads remove dead rows of the small tables, unless a session holds a snapshot.
const HOT: [(&str, u64); 8] = [
    ("arrival", 20_000),
    ("doorbell", 5_000),
    ("freed", 10_000),
    ("gate_todo", 20_000),
    ("job", 10_000),
    ("receipt", 5_000),
    ("task", 40_000),
    ("worker", 5_000),
];
/// The table of tasks, and how many dead rows each task leaves there: the one that its claim replaced, and
/// the one that its settlement removed.
const TASKS: &str = "task";
const DEAD_PER_TASK: u64 = 2;
/// If the leader's process has itself settled tasks that left this many dead rows, the leader does not wait
/// for its next look.
const AT_ONCE: u64 = 100_000;
/// How often the figures are read while there are tables to vacuum. The server updates them no more often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The vacuuming ends after this many looks in a row that found nothing to do.
const CALM_LOOKS: u32 = 5;
/// A vacuum that left more than this percentage of the dead rows removed little.
const FRUITLESS_LEFT_PERCENT: u64 = 50;
/// The shortest pause after vacuums that removed little.
const FRUITLESS_PAUSE_MIN: Duration = Duration::from_secs(5);
/// Such vacuums take at most this share of the time: one part in so many.
const FRUITLESS_SHARE: u32 = 10;
/// The statement. INDEX_CLEANUP: without it dead rows stay. No TRUNCATE: it would lock the table.
/// SKIP_LOCKED: a table that another session vacuums or alters is left out.
const VACUUM: &str = "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0)";

/// What this process knows of vacuums.
#[derive(Debug, Default)]
pub(crate) struct Vacuum {
    wanted: Notify,
    /// Dead rows that the settlements of this process have left in `task` since its last vacuum. The server's
    /// figures are up to a second old, in which a busy fleet leaves hundreds of thousands.
    left_here: AtomicU64,
}

/// A table, as one look found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    table: &'static str,
    worth: u64,
    dead: u64,
}

impl Seen {
    fn is_worth_it(&self) -> bool {
        self.dead >= self.worth
    }
}

/// What the last vacuum of a table did.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Dead rows before and after it.
    dead: u64,
    left: u64,
    took: Duration,
    ended_at: Instant,
    /// Whether the vacuum before it removed little.
    is_repeated: bool,
}

impl Last {
    fn removed_little(&self) -> bool {
        self.left.saturating_mul(100) > self.dead.saturating_mul(FRUITLESS_LEFT_PERCENT)
    }

    /// How long no other vacuum of the table runs after it: as long as it took, so that vacuums take at most
    /// half of the time. Longer after two vacuums in a row that removed little. After one of them the server
    /// may just have counted rows late, which died before that vacuum and were removed by it.
    fn pause(&self) -> Duration {
        if self.is_repeated && self.removed_little() {
            FRUITLESS_PAUSE_MIN.max(self.took * FRUITLESS_SHARE)
        } else {
            self.took
        }
    }
}

/// The last vacuum of each table.
#[derive(Debug, Default)]
struct Book(BTreeMap<&'static str, Last>);

impl Book {
    /// The tables that should be vacuumed now.
    fn due(&self, seen: &[Seen], now: Instant) -> Vec<Seen> {
        let is_rested = |last: &Last| now.saturating_duration_since(last.ended_at) >= last.pause();
        let is_due = |table: &&Seen| table.is_worth_it() && self.0.get(table.table).is_none_or(is_rested);
        seen.iter().filter(is_due).copied().collect()
    }

    /// How long until the first pause of the tables with enough dead rows ends; the longest time if there is
    /// no such table.
    fn rest(&self, seen: &[Seen], now: Instant) -> Duration {
        let left = |last: &Last| last.pause().saturating_sub(now.saturating_duration_since(last.ended_at));
        let worth = seen.iter().filter(|table| table.is_worth_it());
        worth.filter_map(|table| self.0.get(table.table)).map(left).min().unwrap_or(Duration::MAX)
    }
}

/// Notes how many tasks this process has settled. A leader starts to vacuum as soon as they have left many
/// dead rows.
pub(crate) fn settled(shared: &Shared, tasks: usize) {
    let left = tasks as u64 * DEAD_PER_TASK;
    let before = shared.vacuum.left_here.fetch_add(left, Ordering::Relaxed);
    if before < AT_ONCE && before + left >= AT_ONCE && shared.options.vacuum && shared.leadership.leads() {
        shared.vacuum.wanted.notify_one();
    }
}

/// A step of the leader: starts a vacuum if there are enough dead rows.
pub(crate) async fn look(shared: &Shared) -> Result<()> {
    if shared.options.vacuum && seen(shared).await?.iter().any(Seen::is_worth_it) {
        shared.vacuum.wanted.notify_one();
    }
    Ok(())
}

/// The tables that this user may vacuum, with this process's own count of dead rows added.
async fn seen(shared: &Shared) -> Result<Vec<Seen>> {
    let mut tables = counted(shared).await?;
    let left_here = shared.vacuum.left_here.load(Ordering::Relaxed);
    for table in tables.iter_mut().filter(|seen| seen.table == TASKS) {
        table.dead = table.dead.max(left_here);
    }
    Ok(tables)
}

/// The same tables by the server's figures alone.
async fn counted(shared: &Shared) -> Result<Vec<Seen>> {
    let names: Vec<&str> = HOT.iter().map(|(name, _)| *name).collect();
    let schema = shared.options.schema.as_str();
    let rows = shared.duties.query(&sql::VACUUM_LOOK, &[&schema, &names]).await?;
    Ok(rows.iter().filter_map(of_row).collect())
}

fn of_row(row: &Row) -> Option<Seen> {
    let (name, dead): (&str, i64) = (row.get(0), row.get(1));
    let (is_ours, is_left_alone): (bool, bool) = (row.get(2), row.get(3));
    let (table, worth) = HOT.into_iter().find(|(table, _)| *table == name)?;
    (is_ours && !is_left_alone).then_some(Seen { table, worth, dead: u64::try_from(dead).unwrap_or(0) })
}

/// Vacuums when it is woken, until the store is closed.
pub(crate) async fn run(vacuum: Arc<Vacuum>, shared: Weakly) {
    loop {
        tokio::select! {
            () = vacuum.wanted.notified() => {}
            () = shared.closed() => return,
        }
        if let Err(error) = clean(&vacuum, &shared).await {
            tracing::debug!(%error, "a vacuum failed; autovacuum does it meanwhile");
        }
        let Some(shared) = shared.upgrade() else { return };
        shared.cleaning.let_go();
    }
}

/// Vacuums until there has been nothing to do for a while, or another process leads.
async fn clean(vacuum: &Vacuum, shared: &Weakly) -> Result<()> {
    let (mut book, mut calm) = (Book::default(), 0);
    while calm < CALM_LOOKS {
        // Not held during the pause: it must not keep the store open.
        let Some(store) = shared.upgrade().filter(|store| store.leadership.leads()) else { break };
        let seen = seen(&store).await?;
        calm = if seen.iter().any(Seen::is_worth_it) { 0 } else { calm + 1 };
        for table in book.due(&seen, Instant::now()) {
            let is_repeated = book.0.get(table.table).is_some_and(Last::removed_little);
            let last = Last { is_repeated, ..clean_one(&store, &table).await? };
            tracing::debug!(table = table.table, ?last, "cleaned up");
            book.0.insert(table.table, last);
        }
        drop(store);
        let rest = book.rest(&seen, Instant::now());
        tokio::select! {
            () = tokio::time::sleep(rest.min(LOOK_EVERY)) => {}
            () = vacuum.wanted.notified() => {}
            () = shared.closed() => break,
        }
    }
    Ok(())
}

async fn clean_one(shared: &Shared, table: &Seen) -> Result<Last> {
    let began = Instant::now();
    let text = shared.options.schema.render(&format!("{VACUUM} windlass.{}", table.table));
    if table.table == TASKS {
        shared.vacuum.left_here.store(0, Ordering::Relaxed);
    }
    shared.cleaning.session().await?.batch(&text).await?;
    let took = began.elapsed();
    let left = counted(shared).await?.into_iter().find(|seen| seen.table == table.table);
    let left = left.map_or(0, |seen| seen.dead);
    Ok(Last { dead: table.dead, left, took, ended_at: Instant::now(), is_repeated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seen(dead: u64) -> [Seen; 1] {
        [Seen { table: "task", worth: 100, dead }]
    }

    /// A vacuum of 1,000 dead rows that left some of them.
    fn after(left: u64, is_repeated: bool, took: Duration, ended_at: Instant) -> Book {
        Book(BTreeMap::from([("task", Last { dead: 1_000, left, took, ended_at, is_repeated })]))
    }

    #[test]
    fn a_table_is_vacuumed_from_its_own_threshold_on() {
        let (book, now) = (Book::default(), Instant::now());
        assert!(book.due(&seen(99), now).is_empty());
        assert_eq!(book.due(&seen(100), now), seen(100));
    }

    #[test]
    fn vacuums_take_at_most_half_of_the_time() {
        let now = Instant::now();
        let book = after(10, true, 3 * SECOND, now);
        assert!(book.due(&seen(9_000), now + 2 * SECOND).is_empty());
        assert_eq!(book.due(&seen(9_000), now + 3 * SECOND), seen(9_000));
    }

    #[test]
    fn two_fruitless_vacuums_are_followed_by_a_long_pause() {
        let now = Instant::now();
        let book = after(990, true, SECOND, now);
        assert!(book.due(&seen(9_000), now + 9 * SECOND).is_empty(), "one part in ten");
        assert_eq!(book.due(&seen(9_000), now + 10 * SECOND), seen(9_000));
        let book = after(990, true, SECOND / 100, now);
        assert!(book.due(&seen(9_000), now + 4 * SECOND).is_empty(), "and not less than five seconds");
        assert_eq!(book.due(&seen(9_000), now + 5 * SECOND), seen(9_000));
    }

    #[test]
    fn one_vacuum_that_removes_little_may_be_a_late_count() {
        let now = Instant::now();
        let book = after(990, false, SECOND, now);
        assert_eq!(book.rest(&seen(9_000), now), SECOND);
        assert_eq!(book.due(&seen(9_000), now + SECOND), seen(9_000));
    }
}
