//! One connection, with the statements that are prepared on it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::task::AbortHandle;
use tokio_postgres::{
    Client, Row, Socket, Statement,
    types::{ToSql, Type},
};
use windlass_core::Error;

use crate::{
    connection::{
        driver::Driver,
        error::{self, Failure},
        hosts::{self, Preferred},
        options::{Location, Options},
        reach::{Reach, Refusal},
        sync::{Lock, Patience},
        tls,
    },
    sql::{self, Rendered, Sql},
};

/// The settings of every transaction.
///
/// Plans use indexes with any statistics: a table that was empty when the server last analysed it
/// would otherwise be scanned for each task. Plans are made once for all executions, and without JIT
/// compilation, since a statement takes a millisecond.
///
/// These settings are not enough for a join with a column of an index. The server could choose to read the
/// whole index in order, which costs nothing while the table is empty, and keep that plan when the table is
/// full. So statements say `id = ANY (ARRAY[u.id])`, which an index serves and an order does not.
///
/// The server also ends a transaction whose client is silent: a client that has stopped, or cannot be reached
/// any more, must not keep the rows that it locked. The limit is shorter than a lease, so that the worker
/// that takes the tasks over finds the rows unlocked.
const SETTINGS: &str = "enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
     SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan; \
     SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// Added to the settings on a connection whose commits do not wait for the disk.
const SOON: &str = "; SET LOCAL synchronous_commit = off";

/// The statements that make these settings in a session of our own.
pub(crate) fn settings(commits: Commits) -> String {
    let all = format!("SET LOCAL {SETTINGS}{}", commits.setting());
    all.replace("SET LOCAL", "SET")
}

/// When a commit is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commits {
    /// When it is on disk.
    Safe,
    /// At once. For claims and the statements around them: a claim that is lost in a crash of the server
    /// never was, and the settlement that ends it waits for both to be on disk.
    Soon,
}

impl Commits {
    fn setting(self) -> &'static str {
        match self {
            Self::Safe => "",
            Self::Soon => SOON,
        }
    }
}

/// The bytes of one connection, moved by a task on a driver's thread.
pub(crate) type Connection = tokio_postgres::Connection<Socket, tls::Stream<Socket>>;

/// A statement that was sent.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Failure>> + Send + 'a>>;

/// A parameter of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// A server, and how to connect to it.
pub(crate) struct Server {
    pub location: Location,
    tls: tls::Connect,
    pub statements: Rendered,
    pooled: bool,
    connect_timeout: Duration,
    statement_timeout: Duration,
    /// Whether the server can be reached.
    pub reach: Reach,
    preferred: Preferred,
}

impl Server {
    pub(crate) fn new(location: &Location, options: &Options) -> Result<Self, String> {
        Ok(Self {
            tls: location.tls.connect()?,
            location: location.clone(),
            statements: Rendered::new(&options.schema, &options.replaced),
            pooled: options.pooled,
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            reach: Reach::default(),
            preferred: Preferred::default(),
        })
    }

    /// How long a statement may take, unless its pool has another limit.
    pub(crate) fn patience(&self) -> Arc<Patience> {
        Arc::new(Patience::new(self.statement_timeout))
    }

    /// Makes a connection for a purpose, driven on `driver`. The error says why, and that nothing was sent.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        driver: &Driver,
        purpose: &str,
        patience: &Arc<Patience>,
        commits: Commits,
    ) -> Result<Conn, Refusal> {
        let (client, connection) = self.dial(driver, purpose).await?;
        let drive = driver.handle().spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error::text_of(&error), "a connection ended");
            }
        });
        let conn = Conn {
            client,
            server: Arc::clone(self),
            patience: Arc::clone(patience),
            commits,
            prepared: Lock::default(),
            unanswered: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            drive: drive.abort_handle(),
        };
        if !self.pooled {
            let told = conn.batch(&settings(commits)).await;
            told.map_err(|failure| Refusal::new(failure.error.to_string()))?;
        }
        Ok(conn)
    }

    /// Dials one server after the other until one can be written to.
    pub(crate) async fn dial(
        self: &Arc<Self>,
        driver: &Driver,
        purpose: &str,
    ) -> Result<(Client, Connection), Refusal> {
        let configs = &self.location.configs;
        let mut refusals = Vec::new();
        for number in self.preferred.order(configs.len()) {
            let Some(config) = configs.get(number) else { continue };
            let host = hosts::shown(config);
            let mut config = config.clone();
            // The server's list of sessions shows what each is for.
            let name = config.get_application_name().unwrap_or("windlass").to_owned();
            config.application_name(format!("{name} {purpose}"));
            match self.dial_one(driver, config).await {
                Ok(connected) => {
                    self.preferred.answered(number);
                    return Ok(connected);
                }
                Err(refusal) if configs.len() == 1 => return Err(refusal),
                Err(refusal) => refusals.push((host, refusal)),
            }
        }
        let is_full = refusals.iter().any(|(_, refusal)| refusal.is_full);
        let texts: Vec<_> =
            refusals.into_iter().map(|(host, refusal)| format!("{host}: {}", refusal.text)).collect();
        Err(Refusal { text: texts.join("; "), is_full })
    }

    /// Dials on the driver's thread, so that its sockets belong there.
    async fn dial_one(
        self: &Arc<Self>,
        driver: &Driver,
        config: tokio_postgres::Config,
    ) -> Result<(Client, Connection), Refusal> {
        let server = Arc::clone(self);
        let limit = self.connect_timeout / self.location.configs.len().max(1) as u32;
        let dial = driver.handle().spawn(async move {
            match tokio::time::timeout(limit, config.connect(server.tls.clone())).await {
                Ok(Ok(connected)) => Ok(connected),
                Ok(Err(error)) => Err(error::of_connect(&error)),
                Err(_) => Err(Refusal::new(format!("no answer within {limit:?}"))),
            }
        });
        dial.await.unwrap_or_else(|_| Err(Refusal::new("the store was closed")))
    }
}

/// A connection to the server.
pub(crate) struct Conn {
    client: Client,
    server: Arc<Server>,
    patience: Arc<Patience>,
    commits: Commits,
    prepared: Lock<HashMap<&'static str, Statement>>,
    /// Statements that were sent and not answered. One that its caller gave up stays among them.
    unanswered: AtomicUsize,
    is_broken: AtomicBool,
    drive: AbortHandle,
}

impl Drop for Conn {
    fn drop(&mut self) {
        // A silent peer would keep the driving task for ever. The server sees the closed socket and ends the
        // session.
        self.drive.abort();
    }
}

impl Conn {
    /// Whether each statement was answered, and the connection can still be used.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.unanswered.load(Ordering::Acquire) == 0
            && !self.is_broken.load(Ordering::Acquire)
            && !self.client.is_closed()
    }

    /// The statements that open a transaction.
    pub(crate) fn begin_text(&self) -> String {
        if self.server.pooled {
            format!("BEGIN; SET LOCAL {SETTINGS}{}", self.commits.setting())
        } else {
            "BEGIN".to_owned()
        }
    }

    /// Runs a statement that commits by itself. Settings do not last behind a pooler, so there the statement
    /// is sent with a transaction around it, in one go.
    pub(crate) async fn query_alone(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        if !self.server.pooled {
            return self.query(sql, params).await;
        }
        let begin = self.begin_text();
        let (opened, answer, committed) =
            tokio::join!(self.batch(&begin), self.query(sql, params), self.batch("COMMIT"));
        opened?;
        let answer = answer?;
        committed?;
        Ok(answer)
    }

    /// Runs a statement; its answer is bounded in time.
    pub(crate) async fn query(&self, sql: &'static Sql, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        if self.server.pooled {
            let typed: Vec<(Param<'_>, Type)> =
                params.iter().copied().zip(sql.types.iter().cloned()).collect();
            let text = self.server.statements.text(sql);
            return self.bounded(sql.name, self.client.query_typed(&text, &typed)).await;
        }
        let statement = self.statement(sql).await?;
        self.bounded(sql.name, self.client.query(&statement, params)).await
    }

    /// Runs a statement that commits by itself without waiting for the disk, and one that waits for the disk;
    /// both are sent together. `meanwhile` is called in between. If only the second one fails, it is unknown
    /// whether the first one will survive a crash.
    ///
    /// Both go over one connection: a pooler could send the second one to another server, which may never
    /// have had the writes of the first. So behind a pooler the first statement itself waits for the disk.
    pub(crate) async fn query_then_flush(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
        meanwhile: impl FnOnce(&[Row]) + Send,
    ) -> Result<Vec<Row>, Failure> {
        if self.server.pooled {
            return self.query_alone(sql, params).await.inspect(|rows| meanwhile(rows));
        }
        // A statement that is not prepared yet would be sent after the second one.
        self.statement(sql).await?;
        self.statement(&sql::FLUSH).await?;
        let visible = async { self.query(sql, params).await.inspect(|rows| meanwhile(rows)) };
        // Boxed, because the futures of two statements are large.
        let both = Box::pin(async { tokio::join!(biased; visible, self.query(&sql::FLUSH, &[])) });
        match both.await {
            (Ok(rows), Ok(_)) => Ok(rows),
            (Ok(_), Err(failure)) => Err(failure.in_doubt()),
            (Err(failure), flushed) => {
                let is_broken = failure.is_broken || flushed.is_err_and(|failure| failure.is_broken);
                Err(Failure { is_broken, ..failure })
            }
        }
    }

    /// Opens a transaction and runs statements in it, all sent in one go; their answers, in order, or the
    /// first refusal.
    pub(crate) async fn begin_with(
        &self,
        statements: &[(&'static Sql, &[Param<'_>])],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        if !self.server.pooled {
            // A statement that is not prepared yet would be sent out of order.
            for (sql, _) in statements {
                self.statement(sql).await?;
            }
        }
        let begin = self.begin_text();
        let opened = async { self.batch(&begin).await.map(|()| Vec::new()) };
        let mut running: Vec<Answer<'_>> = vec![Box::pin(opened)];
        running.extend(
            statements.iter().map(|(sql, params)| -> Answer<'_> { Box::pin(self.query(sql, params)) }),
        );
        let mut answers: Vec<Option<Result<Vec<Row>, Failure>>> = running.iter().map(|_| None).collect();
        // Polled in order, so that they are sent in order.
        std::future::poll_fn(|cx| {
            let mut is_over = true;
            for (running, answer) in running.iter_mut().zip(&mut answers) {
                if answer.is_none() {
                    match running.as_mut().poll(cx) {
                        Poll::Ready(found) => *answer = Some(found),
                        Poll::Pending => is_over = false,
                    }
                }
            }
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let mut answers = answers.into_iter().flatten();
        // The answer of BEGIN only says whether it failed.
        answers.next().transpose()?;
        answers.collect()
    }

    /// Runs a statement and commits, sent in one go. If the statement fails, the server rolls back instead.
    pub(crate) async fn commit_with(
        &self,
        sql: &'static Sql,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        if !self.server.pooled {
            // A statement that is not prepared yet would be sent out of order.
            self.statement(sql).await?;
        }
        let (answer, committed) = tokio::join!(self.query(sql, params), self.batch("COMMIT"));
        let rows = answer?;
        committed?;
        Ok(rows)
    }

    /// Runs statements without parameters, for their effect.
    pub(crate) async fn batch(&self, text: &str) -> Result<(), Failure> {
        self.bounded("a batch", self.client.batch_execute(text)).await
    }

    /// Runs a statement that answers with one number.
    pub(crate) async fn number(&self, text: &str) -> Result<u64, Failure> {
        let rows = self.bounded("a count", self.client.query_typed(text, &[])).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }

    async fn statement(&self, sql: &'static Sql) -> Result<Statement, Failure> {
        let known = self.prepared.lock().get(sql.name).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let text = self.server.statements.text(sql);
        let statement = self.bounded(sql.name, self.client.prepare_typed(&text, sql.types)).await?;
        self.prepared.lock().insert(sql.name, statement.clone());
        Ok(statement)
    }

    async fn bounded<T>(
        &self,
        name: &str,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let limit = self.patience.limit();
        self.unanswered.fetch_add(1, Ordering::AcqRel);
        let answer = match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(error::of_statement(&error)),
            Err(_) => Err(Failure::broken(Error::Unknown(format!("{name}: no answer within {limit:?}")))),
        };
        self.unanswered.fetch_sub(1, Ordering::AcqRel);
        if answer.as_ref().is_err_and(|failure| failure.is_broken) {
            self.is_broken.store(true, Ordering::Release);
        }
        answer
    }
}
