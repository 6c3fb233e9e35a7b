//! Tokens of the API, by their hashes.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, types::Type};
use windlass_core::{
    Error, Name, NewToken, Result, Sessions, Timestamp, TokenHash, TokenRecord, Tokens,
    token::{Bound, TOKENS_MAX},
};

use crate::{
    connection::{
        call::{Class, Sync},
        reader::read_error,
        tx::{Step, Tx},
    },
    gates::job::{name, optional_name},
    sql,
    store::SqliteStore,
};

#[async_trait]
impl Tokens for SqliteStore {
    async fn add(&self, token: &NewToken) -> Result<TokenRecord> {
        let token = token.clone();
        self.write(Class::Client, Sync::Durable, move |tx| add(tx, token.clone())).await
    }

    async fn list(&self) -> Result<Vec<TokenRecord>> {
        let now = self.now();
        self.read(move |conn| list(conn, now).map_err(|error| read_error(&error))).await
    }

    async fn find(&self, id: &Name) -> Result<Option<TokenRecord>> {
        let (id, now) = (id.clone(), self.now());
        self.read(move |conn| find(conn, &id, now).map_err(|error| read_error(&error))).await
    }

    async fn remove(&self, id: &Name) -> Result<bool> {
        let id = id.clone();
        let work = move |tx: &mut Tx<'_>| -> Step<bool> {
            tx.sql(sql::DELETE_SESSIONS_OF)?.execute([id.as_str()])?;
            Ok(tx.sql(sql::DELETE_TOKEN)?.execute([id.as_str()])? == 1)
        };
        self.write(Class::Client, Sync::Durable, work).await
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }
}

fn add(tx: &mut Tx<'_>, token: NewToken) -> Step<TokenRecord> {
    let expires_at = token.ttl.map(|ttl| tx.now.after(ttl));
    let (scopes, bound) = token.bound.to_stored(token.scopes);
    let added = tx.sql(sql::ADD_TOKEN)?.execute((
        token.id.as_str(),
        token.name.as_ref().map(Name::as_str),
        &token.hash.0,
        scopes,
        tx.now.as_ms(),
        expires_at.map(Timestamp::as_ms),
        bound,
        TOKENS_MAX,
    ))?;
    if added == 0 {
        let full = format!("the id is taken, or there are {TOKENS_MAX} tokens already");
        return Err(Error::Conflict(full).into());
    }
    let NewToken { id, name, hash, scopes, bound, .. } = token;
    let is_expired = expires_at.is_some_and(|at| at <= tx.now);
    Ok(TokenRecord { id, name, hash, scopes, bound, created_at: tx.now, expires_at, is_expired })
}

fn list(conn: &Connection, now: Timestamp) -> rusqlite::Result<Vec<TokenRecord>> {
    conn.prepare_cached(sql::LIST_TOKENS)?.query_map([], |row| read(row, now))?.collect()
}

pub(super) fn find(conn: &Connection, id: &Name, now: Timestamp) -> rusqlite::Result<Option<TokenRecord>> {
    conn.prepare_cached(sql::FIND_TOKEN)?.query_row([id.as_str()], |row| read(row, now)).optional()
}

/// The hash in a column.
pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<TokenHash> {
    let hash: Vec<u8> = row.get(column)?;
    let hash = <[u8; 32]>::try_from(hash.as_slice())
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error)))?;
    Ok(TokenHash(hash))
}

/// The token in the first columns of a row.
pub(super) fn read(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<TokenRecord> {
    let expires_at = row.get::<_, Option<i64>>(5)?.map(Timestamp::from_ms);
    let (scopes, bound) =
        Bound::from_stored(row.get_ref(3)?.as_str()?, row.get::<_, Option<String>>(6)?.as_deref());
    Ok(TokenRecord {
        id: name(row, 0)?,
        name: optional_name(row, 1)?,
        hash: hash(row, 2)?,
        scopes,
        bound,
        created_at: Timestamp::from_ms(row.get(4)?),
        expires_at,
        is_expired: expires_at.is_some_and(|at| at <= now),
    })
}
