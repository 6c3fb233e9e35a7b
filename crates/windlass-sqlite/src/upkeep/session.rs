//! Sessions of browsers, by their hashes.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_core::{Name, NewSession, Result, SessionRecord, Sessions, Timestamp, session::SESSIONS_MAX};

use super::token;
use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
        tx::{Step, Tx},
    },
    gates::job::name,
    sql,
    store::SqliteStore,
};

#[async_trait]
impl Sessions for SqliteStore {
    async fn add(&self, session: &NewSession) -> Result<Option<SessionRecord>> {
        let session = session.clone();
        self.write(Class::Client, Sync::Durable, move |tx| add(tx, &session)).await
    }

    async fn list(&self, token: Option<&Name>, limit: u32) -> Result<Vec<SessionRecord>> {
        let (token, now) = (token.cloned(), self.now());
        self.read(move |conn| list(conn, token.as_ref(), limit, now).map_err(|error| read_error(&error)))
            .await
    }

    async fn find(&self, id: &Name) -> Result<Option<SessionRecord>> {
        let (id, now) = (id.clone(), self.now());
        self.read(move |conn| find(conn, &id, now).map_err(|error| read_error(&error))).await
    }

    async fn see(&self, id: &Name) -> Result<()> {
        let id = id.clone();
        let work = move |tx: &mut Tx<'_>| -> Step<()> {
            tx.sql(sql::SEE_SESSION)?.execute((id.as_str(), tx.now.as_ms()))?;
            Ok(())
        };
        self.write(Class::Client, Sync::Durable, work).await
    }

    async fn end(&self, id: &Name) -> Result<bool> {
        let id = id.clone();
        let work = move |tx: &mut Tx<'_>| -> Step<bool> {
            Ok(tx.sql(sql::DELETE_SESSION)?.execute([id.as_str()])? == 1)
        };
        self.write(Class::Client, Sync::Durable, work).await
    }
}

fn add(tx: &mut Tx<'_>, session: &NewSession) -> Step<Option<SessionRecord>> {
    let now = tx.now;
    let token = token::find(tx.conn, &session.token, now)?.filter(|token| !token.is_expired);
    let Some(token) = token else { return Ok(None) };
    let ends = now.after(session.ttl);
    let expires_at = token.expires_at.map_or(ends, |at| at.min(ends));
    tx.sql(sql::TRIM_SESSIONS)?.execute((session.token.as_str(), SESSIONS_MAX - 1))?;
    let added = tx.sql(sql::ADD_SESSION)?.execute((
        session.id.as_str(),
        session.token.as_str(),
        &session.hash.0,
        now.as_ms(),
        expires_at.as_ms(),
    ))?;
    let NewSession { id, hash, .. } = session.clone();
    let record = SessionRecord { id, hash, token, created_at: now, expires_at, seen_at: now, read_at: now };
    Ok((added == 1).then_some(record))
}

fn list(
    conn: &Connection,
    token: Option<&Name>,
    limit: u32,
    now: Timestamp,
) -> rusqlite::Result<Vec<SessionRecord>> {
    conn.prepare_cached(sql::LIST_SESSIONS)?
        .query_map((now.as_ms(), token.map(Name::as_str), limit), |row| read(row, now))?
        .collect()
}

fn find(conn: &Connection, id: &Name, now: Timestamp) -> rusqlite::Result<Option<SessionRecord>> {
    conn.prepare_cached(sql::FIND_SESSION)?.query_row([id.as_str()], |row| read(row, now)).optional()
}

fn read(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        token: token::read(row, now)?,
        id: name(row, 7)?,
        hash: token::hash(row, 8)?,
        created_at: Timestamp::from_ms(row.get(9)?),
        expires_at: Timestamp::from_ms(row.get(10)?),
        seen_at: Timestamp::from_ms(row.get(11)?),
        read_at: now,
    })
}
