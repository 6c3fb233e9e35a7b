//! Tokens of the API, by their hashes. The server's clock decides when a token expires.

use async_trait::async_trait;
use windlass_core::{
    Error, Name, NewToken, Result, Sessions, TokenHash, TokenRecord, Tokens,
    token::{Bound, TOKENS_MAX},
};

use crate::{
    connection::values::{Cells, ms},
    sql,
    store::PostgresStore,
};

#[async_trait]
impl Tokens for PostgresStore {
    async fn add(&self, token: &NewToken) -> Result<TokenRecord> {
        let name = token.name.as_ref().map(Name::as_str);
        let ttl = token.ttl.map(ms);
        let (hash, (scopes, bound)) = (token.hash.0.as_slice(), token.bound.to_stored(token.scopes));
        let (id, most) = (token.id.as_str(), i64::from(TOKENS_MAX));
        let added = self
            .shared()
            .pool
            .row(&sql::TOKEN_ADD, &[&id, &name, &hash, &scopes, &ttl, &most, &bound])
            .await?;
        added.as_ref().map(record).transpose()?.ok_or_else(|| {
            Error::Conflict(format!("the id is taken, or there are {TOKENS_MAX} tokens already"))
        })
    }

    async fn list(&self) -> Result<Vec<TokenRecord>> {
        self.shared().pool.query(&sql::TOKEN_LIST, &[]).await?.iter().map(record).collect()
    }

    async fn find(&self, id: &Name) -> Result<Option<TokenRecord>> {
        let row = self.shared().pool.row(&sql::TOKEN_FIND, &[&id.as_str()]).await?;
        row.as_ref().map(record).transpose()
    }

    async fn remove(&self, id: &Name) -> Result<bool> {
        let row = self.shared().pool.row(&sql::TOKEN_REMOVE, &[&id.as_str()]).await?;
        Ok(row.is_some())
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }
}

/// The hash in a column.
pub(super) fn hash(row: &tokio_postgres::Row, column: usize) -> Result<TokenHash> {
    <[u8; 32]>::try_from(row.get::<_, &[u8]>(column))
        .map(TokenHash)
        .map_err(|_| Error::Unavailable("another program has changed a token's row".to_owned()))
}

/// The token in the first columns of a row.
pub(super) fn record(row: &tokio_postgres::Row) -> Result<TokenRecord> {
    let (scopes, bound) = Bound::from_stored(row.get(3), row.get::<_, Option<&str>>(7));
    Ok(TokenRecord {
        id: Name::stored("token", row.get::<_, &str>(0))?,
        name: row.get::<_, Option<&str>>(1).map(|name| Name::stored("name", name)).transpose()?,
        hash: hash(row, 2)?,
        scopes,
        bound,
        created_at: row.time(4),
        expires_at: row.time_if_any(5),
        is_expired: row.get(6),
    })
}
