//! What an operator should know of the server: rows that wait for a vacuum and which session keeps them,
//! sizes, connections.

use std::time::Duration;

use windlass_core::Timestamp;

use crate::{
    connection::{
        conn::Conn,
        error::{Failure, OpenError},
        options::{Location, Options},
        values::Cells,
    },
    sql,
    upkeep::migrate::{connect, refused},
};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was looked at")]
pub struct Examination {
    /// The server's version.
    pub version: String,
    /// Connections that the server gives to ordinary users.
    pub connections_max: u64,
    /// Connections in use, by all programs.
    pub connections_used: u64,
    /// Connections of Windlass, as far as this user may see them.
    pub connections_ours: u64,
    /// Whether autovacuum is on.
    pub autovacuum: bool,
    /// Whether a commit that the server acknowledged survives a power cut.
    pub durable: bool,
    /// How full the server's queue of notifications is, from 0 to 1.
    pub notifications: f64,
    /// Whether this user sees the sessions of other users.
    pub sees_all_sessions: bool,
    /// Parts of the history.
    pub history_parts: u64,
    /// How far into the future there are parts.
    pub history_ahead: Option<Duration>,
    /// Whether there is a leader for retention and figures.
    pub has_leader: bool,
    /// Its term.
    pub leader_term: i64,
    /// Tables that are written all the time.
    pub tables: Vec<TableHealth>,
    /// Indexes of the tasks with their bytes, the largest first.
    pub indexes: Vec<(String, u64)>,
    /// The session that holds the oldest snapshot, if there is one.
    pub horizon: Option<Horizon>,
}

/// A table that is written all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableHealth {
    /// Its name.
    pub name: String,
    /// Rows, as the server estimates.
    pub live_rows: u64,
    /// Rows that wait for a vacuum.
    pub dead_rows: u64,
    /// Bytes with indexes.
    pub bytes: u64,
    /// When it was last vacuumed.
    pub cleaned_at: Option<Timestamp>,
    /// Whether autovacuum is switched off for this table.
    pub is_left_alone: bool,
    /// Whether this user may vacuum it.
    pub is_ours: bool,
}

/// What keeps the server from removing dead rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// A session, a prepared transaction or a replication slot.
    pub holder: String,
    /// How many transactions ago its snapshot was taken.
    pub age_transactions: u64,
    /// How long it has been open.
    pub open_for: Option<Duration>,
}

/// Reads the figures of the server and the schema. Changes nothing.
///
/// # Errors
/// [`OpenError`], one line that says what to do.
pub async fn examine(location: &Location, options: &Options) -> Result<Examination, OpenError> {
    let (conn, _driver) = connect(location, options, "doctor").await?;
    look(&conn, options.schema.as_str()).await.map_err(|failure| refused(location, "examine", &failure))
}

async fn look(conn: &Conn, schema: &str) -> Result<Examination, Failure> {
    let rows = conn.query_alone(&sql::DOCTOR_SERVER, &[]).await?;
    let Some(server) = rows.first() else {
        return Err(windlass_core::Error::Unavailable("the server did not describe itself".to_owned()).into());
    };
    let tables = conn.query_alone(&sql::DOCTOR_TABLES, &[&schema]).await?;
    let indexes = conn.query_alone(&sql::DOCTOR_INDEXES, &[&schema]).await?;
    let horizon = conn.query_alone(&sql::DOCTOR_HORIZON, &[]).await?;
    let number = |place: usize| server.get::<_, i64>(place) as u64;
    let ms = |ms: Option<i64>| ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let version: &str = server.get(0);
    Ok(Examination {
        version: version.split(' ').next().unwrap_or(version).to_owned(),
        connections_max: number(1),
        connections_used: number(2),
        connections_ours: number(3),
        autovacuum: server.get(4),
        durable: server.get(5),
        notifications: server.get(6),
        sees_all_sessions: server.get(7),
        history_parts: number(8),
        history_ahead: ms(server.get(9)),
        has_leader: server.get::<_, Option<bool>>(10).unwrap_or(false),
        leader_term: server.get::<_, Option<i64>>(11).unwrap_or(0),
        tables: tables.iter().map(table).collect(),
        indexes: indexes.iter().map(|row| (row.get(0), row.number(1))).collect(),
        horizon: horizon.first().map(|row| Horizon {
            holder: row.get(0),
            age_transactions: row.number(1),
            open_for: ms(row.get(2)),
        }),
    })
}

fn table(row: &tokio_postgres::Row) -> TableHealth {
    TableHealth {
        name: row.get(0),
        live_rows: row.number(1),
        dead_rows: row.number(2),
        bytes: row.number(3),
        cleaned_at: row.time_if_any(4),
        is_left_alone: row.get(5),
        is_ours: row.get(6),
    }
}
