//! The history in parts by the hour of the end: parts are made ahead of time, and dropped whole when they are
//! old.
//!
//! A settlement never fails because a part is missing: a row that fits no part goes to the default partition
//! ("the rest"), from which it is removed row by row. Making and dropping a part need a short exclusive lock.
//! If a reader is in the way, the attempt fails quickly and is repeated later.

use std::time::Duration;

use windlass_core::{Result, Timestamp};

use crate::{
    connection::{error::Failure, pool::Session, values::Cells},
    shared::Shared,
    sql,
    upkeep::leader::{self, CHUNK_ROWS, Term},
};

/// The time that one part covers.
const PART: Duration = Duration::from_hours(1);
/// How many parts there are ahead.
const PARTS_AHEAD: i64 = 7;
/// With less than this ahead, more are made.
pub(crate) const AHEAD: Duration = Duration::from_hours(6);
/// A history that is kept for a shorter time than this is also removed row by row: whole parts would be too
/// coarse.
const ROW_BY_ROW_BELOW: Duration = Duration::from_hours(6);
/// How long making or dropping a part waits for a lock. All later sessions wait behind it meanwhile.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '100ms'";
/// Rows that a look at the size of the history reads.
const SIZE_LOOK: i64 = 20_000;
/// Rows that may be counted before a part is dropped.
const COUNT_MAX: i64 = 100_000;

/// A part of the history.
struct Part {
    name: String,
    until: Timestamp,
    bytes: u64,
    rows: u64,
}

/// Whether a history of this age is removed row by row as well as in parts.
pub(crate) fn goes_row_by_row(age: Duration) -> bool {
    age < ROW_BY_ROW_BELOW
}

/// Makes parts for the coming hours. A part that cannot be made now does not stop the others.
pub(crate) async fn make_parts(shared: &Shared, term: Term) -> Result<()> {
    let width = PART.as_millis() as i64;
    let first = term.now.as_ms().div_euclid(width);
    for number in first..=first + PARTS_AHEAD {
        let (from, until) = (number * width, (number + 1) * width);
        if let Err(failure) = make_part(shared, term, from, until).await {
            if failure.is_broken {
                return Err(failure.error);
            }
            tracing::debug!(error = %failure.error, "a part of the history could not be made yet");
        }
    }
    Ok(())
}

async fn make_part(shared: &Shared, term: Term, from: i64, until: i64) -> Result<(), Failure> {
    let mut session = shared.duties.session().await?;
    if !leader::hold(shared, &mut session, term).await? {
        return Ok(());
    }
    let name = format!("history_{from}");
    let made = async {
        session.batch(LOCK_TIMEOUT).await?;
        let schema = &shared.options.schema;
        // If rows of that hour were put into the rest meanwhile, the server refuses the part, and the rest
        // keeps them.
        let text = schema.render(&format!(
            "CREATE TABLE IF NOT EXISTS windlass.{name} PARTITION OF windlass.history FOR VALUES FROM ({from}) TO ({until})"
        ));
        session.batch(&text).await?;
        session.query(&sql::NOTE_PART, &[&name, &from, &until]).await?;
        session.commit().await
    };
    let made = made.await;
    if made.is_err() {
        session.rollback().await;
    }
    made
}

/// Drops the parts in which every task ended before a time; answers how many tasks they had.
pub(crate) async fn drop_old(shared: &Shared, term: Term, cutoff: Timestamp) -> Result<u64> {
    let mut dropped = 0;
    for part in parts(shared).await?.into_iter().filter(|part| part.until <= cutoff) {
        dropped += drop_part(shared, term, &part).await?;
    }
    Ok(dropped)
}

async fn parts(shared: &Shared) -> Result<Vec<Part>> {
    let rows = shared.duties.query(&sql::PARTS, &[&shared.options.schema.as_str()]).await?;
    let part = |row: &tokio_postgres::Row| Part {
        name: row.get(0),
        until: row.time(2),
        bytes: row.number(3),
        rows: row.number(4),
    };
    Ok(rows.iter().map(part).collect())
}

/// Drops one part. If a reader is in the way, it fails quickly and harmlessly: the next step tries again.
async fn drop_part(shared: &Shared, term: Term, part: &Part) -> Result<u64> {
    let mut session = shared.duties.session().await?;
    match drop_in(shared, &mut session, term, part).await {
        Ok(rows) => Ok(rows),
        Err(failure) if failure.is_broken => Err(failure.error),
        Err(failure) => {
            session.rollback().await;
            tracing::debug!(part = part.name, error = %failure.error, "a part of the history could not be dropped yet");
            Ok(0)
        }
    }
}

async fn drop_in(
    shared: &Shared,
    session: &mut Session<'_>,
    term: Term,
    part: &Part,
) -> Result<u64, Failure> {
    if !leader::hold(shared, session, term).await? {
        return Ok(0);
    }
    session.batch(LOCK_TIMEOUT).await?;
    let schema = &shared.options.schema;
    let rows = if part.rows > COUNT_MAX as u64 {
        part.rows
    } else {
        let count = schema.render(&format!(
            "SELECT count(*) FROM (SELECT 1 FROM windlass.{} LIMIT {COUNT_MAX}) AS kept",
            part.name
        ));
        session.number(&count).await?
    };
    // This locks the whole history exclusively for a moment; therefore the short wait for the lock above.
    let detach = format!("ALTER TABLE windlass.history DETACH PARTITION windlass.{}", part.name);
    session.batch(&schema.render(&detach)).await?;
    // A blocked workflow needs the task that blocks it, so that task moves to the rest. The rest can take it,
    // since its hour no longer has a part. All columns are copied by position: a part has the columns of the
    // history.
    let keep = format!(
        "WITH kept AS (
           INSERT INTO windlass.history
           SELECT h.*
           FROM windlass.workflow AS w
           CROSS JOIN LATERAL (SELECT h.* FROM windlass.{} AS h WHERE h.id = w.blocked_by OFFSET 0) AS h
           WHERE w.blocked_by IS NOT NULL
           RETURNING 1
         ) SELECT count(*) FROM kept",
        part.name
    );
    let kept = session.number(&schema.render(&keep)).await?;
    session.batch(&schema.render(&format!("DROP TABLE windlass.{}", part.name))).await?;
    session.query(&sql::FORGET_PART, &[&part.name]).await?;
    session.commit().await?;
    Ok(rows.saturating_sub(kept))
}

/// Keeps the history below a size: first drops whole parts, the oldest first; if only the last part is left,
/// removes rows.
pub(crate) async fn keep_small(shared: &Shared, term: Term, max_bytes: u64) -> Result<(u64, bool)> {
    if !shared.leadership.must_measure() {
        return Ok((0, false));
    }
    let parts = parts(shared).await?;
    let mut bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    if bytes <= max_bytes && !parts.is_empty() {
        shared.leadership.measured();
        return Ok((0, false));
    }
    let mut moved = 0;
    let filled: Vec<&Part> = parts.iter().filter(|part| part.rows > 0 && part.until <= term.now).collect();
    for part in filled {
        if bytes <= max_bytes {
            return Ok((moved, false));
        }
        let rows = drop_part(shared, term, part).await?;
        bytes = bytes.saturating_sub(if rows > 0 { part.bytes } else { 0 });
        moved += rows;
    }
    let (rows, more) = trim(shared, term, max_bytes).await?;
    Ok((moved + rows, more))
}

/// Removes rows of the part that is being filled. Its bytes are estimated from its rows, because removed rows
/// give no disk space back before a vacuum.
async fn trim(shared: &Shared, term: Term, max_bytes: u64) -> Result<(u64, bool)> {
    let Some(row) = shared.duties.row(&sql::HISTORY_SIZE, &[&SIZE_LOOK]).await? else {
        return Ok((0, false));
    };
    let (seen, row_bytes): (i64, i64) = (row.get(0), row.get(1));
    let live: u64 = parts(shared).await?.iter().map(|part| part.rows).sum();
    let rows = if seen < SIZE_LOOK { seen as u64 } else { live.max(seen as u64) };
    let surplus = (rows * row_bytes as u64).saturating_sub(max_bytes).div_ceil(row_bytes.max(1) as u64);
    if surplus == 0 {
        return Ok((0, false));
    }
    let n = i64::try_from(surplus).unwrap_or(i64::MAX).min(CHUNK_ROWS);
    let (moved, _) = leader::remove(shared, term, &sql::DELETE_HISTORY, &[&i64::MAX, &n]).await?;
    Ok((moved, moved > 0 && surplus > moved))
}
