//! Sessions of browsers, by their hashes. The server's clock decides when a session ends.

use async_trait::async_trait;
use tokio_postgres::Row;
use windlass_core::{Name, NewSession, Result, SessionRecord, Sessions, session::SESSIONS_MAX};

use super::token;
use crate::{
    connection::values::{Cells, ms},
    sql,
    store::PostgresStore,
};

#[async_trait]
impl Sessions for PostgresStore {
    async fn add(&self, session: &NewSession) -> Result<Option<SessionRecord>> {
        let ttl = ms(session.ttl);
        let (id, token, hash) = (session.id.as_str(), session.token.as_str(), session.hash.0.as_slice());
        let others = i64::from(SESSIONS_MAX) - 1;
        let added = self.shared().pool.row(&sql::SESSION_ADD, &[&id, &token, &hash, &ttl, &others]).await?;
        added.as_ref().map(record).transpose()
    }

    async fn list(&self, token: Option<&Name>, limit: u32) -> Result<Vec<SessionRecord>> {
        let (token, limit) = (token.map(Name::as_str), i64::from(limit));
        self.shared().pool.query(&sql::SESSION_LIST, &[&token, &limit]).await?.iter().map(record).collect()
    }

    async fn find(&self, id: &Name) -> Result<Option<SessionRecord>> {
        let row = self.shared().pool.row(&sql::SESSION_FIND, &[&id.as_str()]).await?;
        row.as_ref().map(record).transpose()
    }

    async fn see(&self, id: &Name) -> Result<()> {
        self.shared().pool.query(&sql::SESSION_SEE, &[&id.as_str()]).await?;
        Ok(())
    }

    async fn end(&self, id: &Name) -> Result<bool> {
        let row = self.shared().pool.row(&sql::SESSION_END, &[&id.as_str()]).await?;
        Ok(row.is_some())
    }
}

fn record(row: &Row) -> Result<SessionRecord> {
    Ok(SessionRecord {
        token: token::record(row)?,
        id: Name::stored("session", row.get::<_, &str>(8))?,
        hash: token::hash(row, 9)?,
        created_at: row.time(10),
        expires_at: row.time(11),
        seen_at: row.time(12),
        read_at: row.time(13),
    })
}
