//! The leader's look at the lanes: those that stand empty are retired, and a retired one with ready tasks
//! comes back.
//!
//! A lane passes three states. A look notes that it stands empty (`idle_since`), and a later look retires
//! it. A task that enters it takes both back, in the commit of the task: each statement that adds tasks asks
//! for such notes. Only a transaction that began before the first of the two looks and commits after the
//! second misses the note. The next look finds its tasks.

use std::time::Duration;

use windlass_core::{
    Result,
    lanes::{LOOK_EVERY, LaneCounts},
};

use crate::{
    connection::{error::Failure, sync::Pause},
    shared::Shared,
    sql,
    upkeep::leader::{Term, hold},
};

/// Most tasks of a state that a look reads. A store that has more retires no lane until it has fewer.
const LOOK_MAX: i64 = 1_000_000;
/// How long the server may look. A look that takes longer is given up.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);
/// How long no look follows one that was given up: looking takes at most a fiftieth of the time.
const GIVEN_UP_FOR: Duration = Duration::from_secs(100);

/// How long a statement waits for a lane that a caller has locked. The next look tries again.
/// A retirement that a crash forgets is repeated: it does not wait for the disk, because callers wait for it.
const SETTINGS: &str = "SET LOCAL lock_timeout = '100ms'; SET LOCAL synchronous_commit = off";

/// Looks at the lanes, if it is time. A store with few lanes is not looked at.
pub(crate) async fn look(shared: &Shared, term: Term) -> Result<()> {
    let (missed, used) = (&shared.leadership.lanes_missed, &shared.leadership.lanes_used);
    if !missed.is_over() && !used.is_over() {
        return Ok(());
    }
    let mut session = shared.duties.session().await?;
    let Some(row) = session.row(&sql::LANES_SURPLUS, &[]).await? else { return Ok(()) };
    let in_use = row.get::<_, i64>(0) as usize;
    let has_retired: bool = row.get(1);
    let surplus = LaneCounts { in_use, ever: in_use }.surplus(&shared.rules);
    if missed.is_over() {
        let is_complete =
            !has_retired || session.query_within(LOOK_TIME_MAX, &sql::LANES_MISSED, &[]).await?.is_some();
        ended(missed, is_complete);
    }
    if !used.is_over() {
        return Ok(());
    }
    if surplus == 0 {
        ended(used, true);
        return Ok(());
    }
    let seen = session.query_within(LOOK_TIME_MAX, &sql::LANES_USED, &[&LOOK_MAX]).await?;
    ended(used, seen.is_some());
    drop(session);
    let row = seen.as_ref().and_then(|rows| rows.first());
    let Some(lanes) = row.map(|row| row.get::<_, Vec<i32>>(0)) else { return Ok(()) };
    match retire(shared, term, &lanes, surplus).await {
        Err(failure) if !failure.is_broken => {
            tracing::debug!(error = %failure.error, "no lane could be retired; the next look tries again");
            Ok(())
        }
        ended => Ok(ended?),
    }
}

/// One that was given up is not repeated soon.
fn ended(look: &Pause, is_complete: bool) {
    look.begin(if is_complete { LOOK_EVERY } else { GIVEN_UP_FOR });
}

async fn retire(shared: &Shared, term: Term, used: &[i32], surplus: usize) -> Result<(), Failure> {
    let mut session = shared.duties.session().await?;
    if !hold(shared, &mut session, term).await? {
        return Ok(());
    }
    session.batch(SETTINGS).await?;
    let (empty_for, most) = (LOOK_EVERY.as_millis() as i64, surplus as i64);
    let rows = session.query(&sql::LANES_RETIRE, &[&used, &empty_for, &most]).await?;
    if rows.iter().any(|row| row.get(0)) {
        session.query(&sql::NOTIFY, &[&shared.doorbell.channel, &"lanes"]).await?;
    }
    session.commit().await
}
