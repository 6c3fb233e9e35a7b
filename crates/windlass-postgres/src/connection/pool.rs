//! A few connections for one purpose. Each purpose has its own, so that sweeps cannot starve claims and
//! renewals.
//!
//! A connection returns to the pool only if its last statement was answered and no transaction is open. A
//! caller that is cancelled before that closes its connection, and the server undoes the transaction.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
};
use tokio_postgres::Row;
use windlass_core::{
    Error, Result,
    usage::{InUse, PoolMeter, PoolUsage},
};

use crate::{
    connection::{
        conn::{Commits, Conn, Param, Server},
        driver::Driver,
        error::Failure,
        reach::Refusal,
        sync::{Lock, Patience},
    },
    sql::Sql,
};

/// How long a caller waits for a connection while other callers use all of them.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Connections for one purpose.
pub(crate) struct Pool {
    server: Arc<Server>,
    driver: Arc<Driver>,
    purpose: &'static str,
    commits: Commits,
    patience: Arc<Patience>,
    permits: Semaphore,
    idle: Lock<Vec<Arc<Conn>>>,
    outage: Lock<Outage>,
    is_closed: AtomicBool,
    meter: PoolMeter,
}

/// When connecting failed for this pool.
#[derive(Default)]
struct Outage {
    is_on: bool,
    /// When a connection was made again after the server could not be reached.
    over_at: Option<Instant>,
}

impl Pool {
    pub(crate) fn new(
        server: &Arc<Server>,
        driver: &Arc<Driver>,
        purpose: &'static str,
        size: usize,
    ) -> Self {
        Self {
            server: Arc::clone(server),
            driver: Arc::clone(driver),
            purpose,
            commits: Commits::Safe,
            patience: server.patience(),
            permits: Semaphore::new(size),
            idle: Lock::default(),
            outage: Lock::default(),
            is_closed: AtomicBool::new(false),
            meter: PoolMeter::new(purpose, size as u32),
        }
    }

    /// The same pool, but commits are answered before they are on disk.
    pub(crate) fn soon(self) -> Self {
        Self { commits: Commits::Soon, ..self }
    }

    /// The runtime on which these connections are driven.
    pub(crate) fn handle(&self) -> &Handle {
        self.driver.handle()
    }

    /// A connection for the caller, until the session is dropped.
    pub(crate) async fn session(&self) -> Result<Session<'_>> {
        self.refuse_if_closed()?;
        let permit = match self.permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => self.wait_for_permit().await?,
        };
        let in_use = self.meter.enter();
        let idle = loop {
            match self.idle.lock().pop() {
                Some(conn) if !conn.is_at_rest() => {}
                found => break found,
            }
        };
        let conn = match idle {
            Some(conn) => conn,
            None => self.connect().await?,
        };
        self.refuse_if_closed()?;
        Ok(Session { conn, pool: self, _permit: permit, _in_use: in_use, in_transaction: false })
    }

    /// Runs one statement that commits by itself.
    pub(crate) async fn query(&self, sql: &'static Sql, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        self.session().await?.query(sql, params).await
    }

    /// The same for a statement that answers with at most one row.
    pub(crate) async fn row(&self, sql: &'static Sql, params: &[Param<'_>]) -> Result<Option<Row>, Failure> {
        self.session().await?.row(sql, params).await
    }

    /// Connects if the pool has no connection yet, so that the first caller need not wait for it. It does not
    /// wait for other callers, and an error is left to the first caller.
    pub(crate) async fn warm(&self) {
        let Ok(_permit) = self.permits.try_acquire() else { return };
        let is_connected = !self.idle.lock().is_empty();
        if is_connected {
            return;
        }
        if let Ok(conn) = self.connect().await
            && !self.is_closed.load(Ordering::Acquire)
        {
            self.idle.lock().push(conn);
        }
    }

    async fn wait_for_permit(&self) -> Result<SemaphorePermit<'_>> {
        let asked_at = Instant::now();
        let permit = tokio::time::timeout(WAIT_MAX, self.permits.acquire()).await;
        self.meter.waited(asked_at.elapsed());
        permit
            .map_err(|_| {
                let purpose = self.purpose;
                Error::Unavailable(format!("every connection for {purpose} is busy for {WAIT_MAX:?}"))
            })?
            .map_err(|_| closed())
    }

    /// How many connections are used, and how many callers wait.
    pub(crate) fn usage(&self) -> PoolUsage {
        self.meter.read()
    }

    /// From now on no statement takes longer than this: then its connection is closed.
    pub(crate) fn lower_patience(&self, limit: Duration) {
        self.patience.lower(limit);
    }

    /// How long ago the server was reached again after an outage; `None` if there was none.
    pub(crate) fn since_outage(&self) -> Option<Duration> {
        self.outage.lock().over_at.map(|at| at.elapsed())
    }

    /// Closes idle connections; the next call connects again.
    pub(crate) fn let_go(&self) {
        self.idle.lock().clear();
    }

    /// Refuses every later call and closes idle connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.permits.close();
        self.let_go();
    }

    async fn connect(&self) -> Result<Arc<Conn>> {
        let connected = self.dial().await;
        let mut outage = self.outage.lock();
        match connected {
            Ok(conn) => {
                if std::mem::take(&mut outage.is_on) {
                    outage.over_at = Some(Instant::now());
                }
                Ok(Arc::new(conn))
            }
            Err(refusal) => {
                outage.is_on = true;
                Err(Error::Unavailable(format!("{}: {}", self.server.location, refusal.text)))
            }
        }
    }

    async fn dial(&self) -> Result<Conn, Refusal> {
        let reach = &self.server.reach;
        let _turn = reach.turn().await?;
        match self.server.connect(&self.driver, self.purpose, &self.patience, self.commits).await {
            Ok(conn) => {
                reach.connected();
                Ok(conn)
            }
            Err(refusal) => {
                reach.refused(&refusal);
                Err(refusal)
            }
        }
    }

    fn refuse_if_closed(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }
}

pub(crate) fn closed() -> Error {
    Error::Unavailable("the store is closed".to_owned())
}

/// A caller's use of one connection. What it does not say itself is said to the connection.
pub(crate) struct Session<'a> {
    conn: Arc<Conn>,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
    _in_use: InUse<'a>,
    in_transaction: bool,
}

impl std::ops::Deref for Session<'_> {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl Session<'_> {
    /// Runs a statement.
    pub(crate) async fn query(
        &mut self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        if self.in_transaction {
            self.conn.query(sql, params).await
        } else {
            self.conn.query_alone(sql, params).await
        }
    }

    /// Runs a statement that answers with at most one row.
    pub(crate) async fn row(
        &mut self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, Failure> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Runs a statement for at most this long; `None` if the server cancelled it then. For reads that may
    /// have to pass over many dead rows.
    pub(crate) async fn query_within(
        &mut self,
        limit: Duration,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Option<Vec<Row>>, Failure> {
        self.begin().await?;
        self.batch(&format!("SET LOCAL statement_timeout = {}", limit.as_millis().max(1))).await?;
        match self.query(sql, params).await {
            Ok(rows) => {
                self.commit().await?;
                Ok(Some(rows))
            }
            Err(failure) => {
                self.rollback().await;
                if failure.ran_out_of_time() { Ok(None) } else { Err(failure) }
            }
        }
    }

    /// Opens a transaction; without [`Session::commit`] the server undoes it.
    pub(crate) async fn begin(&mut self) -> Result<(), Failure> {
        self.in_transaction = true;
        self.batch(&self.begin_text()).await
    }

    /// Opens a transaction and runs statements in it, all sent in one go.
    pub(crate) async fn begin_with(
        &mut self,
        statements: &[(&'static Sql, &[Param<'_>])],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        self.in_transaction = true;
        self.conn.begin_with(statements).await
    }

    /// Ends the transaction. An error after this was sent may mean that it took effect.
    pub(crate) async fn commit(&mut self) -> Result<(), Failure> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Runs a last statement and ends the transaction, both sent in one go; a statement that fails undoes the
    /// transaction. An error after this was sent may mean that it took effect.
    pub(crate) async fn commit_with(
        &mut self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let answer = self.conn.commit_with(sql, params).await;
        // After an error it is unknown whether the transaction is still open; a rollback without one does no
        // harm.
        self.in_transaction = answer.is_err();
        answer
    }

    /// Undoes the transaction and keeps the connection; a broken connection is closed at once.
    pub(crate) async fn rollback(&mut self) {
        if self.is_at_rest() && self.batch("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if self.is_at_rest() && !self.in_transaction && !self.pool.is_closed.load(Ordering::Acquire) {
            self.pool.idle.lock().push(Arc::clone(&self.conn));
        }
    }
}
