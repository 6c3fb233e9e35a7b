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
    connection::repeat::repeat,
    shared::Shared,
    sql,
    upkeep::leader::{Term, hold},
};

/// Most tasks of a state that a look reads. A store that has more retires no lane until it has fewer.
const LOOK_MAX: i64 = 1_000_000;
/// How long the server may look. A look that takes longer is given up.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);
/// How long no look follows one that was given up: looking takes at most a fiftieth of the time.
const PAUSE: Duration = Duration::from_secs(100);

/// Looks at the lanes, if it is time. A store with few lanes is not looked at.
pub(crate) async fn look(shared: &Shared, term: Term) -> Result<()> {
    if !shared.leadership.must_look_at_lanes(LOOK_EVERY) {
        return Ok(());
    }
    let mut session = shared.duties.session().await?;
    let Some(row) = session.row(&sql::LANES_SURPLUS, &[]).await? else { return Ok(()) };
    let in_use = row.get::<_, i64>(0) as usize;
    let (has_retired, surplus) = (row.get(1), LaneCounts { in_use, ever: in_use }.surplus(&shared.rules));
    if has_retired {
        session.query_within(LOOK_TIME_MAX, &sql::LANES_MISSED, &[]).await?;
    }
    if surplus == 0 {
        return Ok(());
    }
    let Some(seen) = session.query_within(LOOK_TIME_MAX, &sql::LANES_USED, &[&LOOK_MAX]).await? else {
        shared.leadership.lanes_seen_until(PAUSE);
        return Ok(());
    };
    drop(session);
    let Some(used) = seen.first().map(|row| row.get::<_, Vec<i32>>(0)) else { return Ok(()) };
    retire(shared, term, &used, surplus).await
}

async fn retire(shared: &Shared, term: Term, used: &[i32], surplus: usize) -> Result<()> {
    let (empty_for, most) = (LOOK_EVERY.as_millis() as i64, surplus as i64);
    repeat(|| async {
        let mut session = shared.duties.session().await?;
        if !hold(shared, &mut session, term).await? {
            return Ok(());
        }
        let rows = session.query(&sql::LANES_RETIRE, &[&used, &empty_for, &most]).await?;
        if rows.iter().any(|row| row.get(0)) {
            session.query(&sql::NOTIFY, &[&shared.doorbell.channel, &"lanes"]).await?;
        }
        session.commit().await
    })
    .await
}
