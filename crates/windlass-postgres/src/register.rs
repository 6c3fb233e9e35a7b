//! Registration: a worker's row, and what it needs first made ready.
//!
//! ```text
//!   connected: renewals, claims ──► its row ──► first claims ──► admission; settlements connected; the rest planned
//!                        └──► the first claim planned ──┘
//! ```
//! Everything that a new connection does for the first time costs the server milliseconds: to connect, to parse, to plan. What the
//! first claims need comes before them, and what they do not need after them.

use std::{sync::Arc, time::Duration};

use windlass_core::{Error, Name, NewWorker, Result, WorkerId, worker::Registration};

use crate::{
    gate,
    pool::Pool,
    shared::{Shared, Weakly},
    sql::{self, Sql},
};

/// For how long the first claims of a worker have the server to themselves.
const FIRST_CLAIMS: Duration = Duration::from_millis(30);

/// Stores a worker.
pub(crate) async fn register(
    shared: &Arc<Shared>,
    worker: &NewWorker,
    owner: Option<&str>,
) -> Result<WorkerId> {
    shared.serve_lease(worker.lease_ttl);
    // Before its lease begins to run: it claims next, and waits for nothing then.
    tokio::join!(shared.beats.warm(), shared.claims.warm(), async {
        if !shared.server.is_here() {
            // It takes nothing away from the first claims there, and takes longer.
            shared.settles.warm().await;
        }
    });
    let ways = Ways::of(shared, worker);
    let claims = Arc::clone(shared);
    shared.claims.spawn(Box::pin(async move { plan(&claims.claims, ways.first).await }));
    let id = enter(shared, worker, owner).await?;
    if shared.options.trusts_hearsay {
        shared.looks.begin();
        shared.claims.spawn(Box::pin(follow_up(Weakly::new(shared), ways)));
    } else {
        gate::worker_came(shared).await;
    }
    Ok(id)
}

async fn enter(shared: &Shared, worker: &NewWorker, owner: Option<&str>) -> Result<WorkerId> {
    let mut session = shared.beats.session().await?;
    let names = |names: &[Name]| names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
    let (kinds, queues) = (names(&worker.kinds), names(&worker.queues));
    let ttl = i64::try_from(worker.lease_ttl.as_millis()).unwrap_or(i64::MAX);
    let (pid, slots) = (worker.pid as i32, worker.slots as i32);
    let row = session
        .row(&sql::REGISTER, &[&worker.host, &pid, &worker.version, &kinds, &queues, &slots, &ttl, &owner])
        .await?;
    row.map(|row| WorkerId(row.get(0)))
        .ok_or_else(|| Error::Unavailable("the server registered no worker".to_owned()))
}

/// What a worker registered with.
pub(crate) async fn registration(shared: &Shared, worker: WorkerId) -> Result<Option<Registration>> {
    let row = shared.pool.session().await?.row(&sql::REGISTRATION, &[&worker.0]).await?;
    let names = |row: &tokio_postgres::Row, column: usize| -> Vec<Name> {
        let names: Vec<String> = row.get(column);
        names.into_iter().filter_map(|name| Name::new("name", name).ok()).collect()
    };
    Ok(row.map(|row| Registration { owner: row.get(0), kinds: names(&row, 1), queues: names(&row, 2) }))
}

/// What need not come before the first claims of a worker that has its row.
async fn follow_up(shared: Weakly, ways: Ways) {
    tokio::select! {
        () = tokio::time::sleep(FIRST_CLAIMS) => {}
        () = shared.closed() => return,
    }
    let Some(shared) = shared.upgrade() else { return };
    gate::worker_came(&shared).await;
    plan(&shared.settles, &sql::SETTLE_DONE_AT).await;
    plan(&shared.claims, ways.next).await;
    plan(&shared.claims, &sql::LOOK).await;
}

/// The statements of a worker's claims in the order in which it comes to need them.
#[derive(Clone, Copy)]
struct Ways {
    first: &'static Sql,
    next: &'static Sql,
}

impl Ways {
    /// Several lanes are compared before any is taken from the short way (see [`crate::looks`]).
    fn of(shared: &Shared, worker: &NewWorker) -> Self {
        if shared.lanes.served(&worker.kinds, &worker.queues).len() > 1 {
            Self { first: &sql::CLAIM_MERGED, next: &sql::CLAIM_QUICK }
        } else {
            Self { first: &sql::CLAIM_QUICK, next: &sql::CLAIM }
        }
    }
}

/// Has a statement planned before it is needed. Should it fail, whoever needs it is told.
async fn plan(pool: &Pool, sql: &'static Sql) {
    let planned = async { pool.session().await?.plan(sql).await.map_err(Error::from) };
    if let Err(error) = planned.await {
        tracing::debug!(%error, statement = sql.name, "a statement could not be planned ahead");
    }
}
