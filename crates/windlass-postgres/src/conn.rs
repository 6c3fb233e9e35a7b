//! One connection, with the statements that are prepared on it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::task::AbortHandle;
use tokio_postgres::{
    AsyncMessage, Client, Connection, Row, Socket, Statement,
    types::{ToSql, Type},
};
use windlass_core::Error;

use crate::{
    driver::Driver,
    error::{self, Failure},
    options::{Location, Options},
    sql::{Rendered, Sql},
    tls,
};

/// A parameter of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// A server, as connections are made to it.
pub(crate) struct Server {
    location: Location,
    tls: tls::Connect,
    pub statements: Rendered,
    pooled: bool,
    connect_timeout: Duration,
    pub statement_timeout: Duration,
}

impl Server {
    pub(crate) fn new(location: &Location, options: &Options) -> Result<Self, String> {
        Ok(Self {
            tls: location.tls.connect()?,
            location: location.clone(),
            statements: Rendered::new(&options.schema),
            pooled: options.pooled,
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
        })
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Makes a connection, driven on `driver`. The error says why, and that nothing was sent.
    pub(crate) async fn connect(self: &Arc<Self>, driver: &Driver) -> Result<Conn, String> {
        let (client, connection) = self.dial(driver).await?;
        let drive = driver.handle().spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error::text_of(&error), "a connection ended");
            }
        });
        Ok(Conn {
            client,
            server: Arc::clone(self),
            prepared: Mutex::default(),
            drive: drive.abort_handle(),
        })
    }

    /// Dials, on the driver's thread, so that its sockets belong there.
    pub(crate) async fn dial(
        self: &Arc<Self>,
        driver: &Driver,
    ) -> Result<(Client, Connection<Socket, tls::Stream<Socket>>), String> {
        let server = Arc::clone(self);
        let dial = driver.handle().spawn(async move {
            let dial = server.location.config.connect(server.tls.clone());
            match tokio::time::timeout(server.connect_timeout, dial).await {
                Ok(Ok(connected)) => Ok(connected),
                Ok(Err(error)) => Err(error::of_connect(&error)),
                Err(_) => Err(format!("no answer within {:?}", server.connect_timeout)),
            }
        });
        dial.await.unwrap_or_else(|_| Err("the store was closed".to_owned()))
    }
}

/// A connection of our own.
pub(crate) struct Conn {
    client: Client,
    server: Arc<Server>,
    prepared: Mutex<HashMap<&'static str, Statement>>,
    drive: AbortHandle,
}

impl Drop for Conn {
    fn drop(&mut self) {
        // A peer that is silent would keep the driving task for ever; the server takes the closed socket as the end.
        self.drive.abort();
    }
}

impl Conn {
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Prepares statements, so that several can be sent in a row without an answer in between.
    pub(crate) async fn prepare(&self, statements: &[&'static Sql]) -> Result<(), Failure> {
        if !self.server.pooled {
            for sql in statements {
                self.statement(sql).await?;
            }
        }
        Ok(())
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

    /// Runs statements without parameters, for their effect.
    pub(crate) async fn batch(&self, text: &str) -> Result<(), Failure> {
        self.bounded("a batch", self.client.batch_execute(text)).await
    }

    /// The driver's own client, for what has no statement of ours.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    async fn statement(&self, sql: &'static Sql) -> Result<Statement, Failure> {
        let known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).get(sql.name).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let text = self.server.statements.text(sql);
        let statement = self.bounded(sql.name, self.client.prepare_typed(&text, sql.types)).await?;
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.name, statement.clone());
        Ok(statement)
    }

    async fn bounded<T>(
        &self,
        name: &str,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        let limit = self.server.statement_timeout;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(error::of_statement(&error)),
            Err(_) => Err(Failure {
                error: Error::Unknown(format!("{name}: no answer within {limit:?}")),
                is_broken: true,
                is_worth_repeating: false,
            }),
        }
    }
}

/// Messages of a connection that nobody asked for.
pub(crate) type Messages = Result<AsyncMessage, tokio_postgres::Error>;
