//! Sessions of browsers. A login with a token starts one, and it allows what its token allows. A store keeps
//! the hash only; the secret is in the browser's cookie.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    error::{Error, Result},
    name::Name,
    time::Timestamp,
    token::{TokenHash, TokenRecord},
};

/// How long a session lasts, if its token does not end before.
pub const SESSION_TTL: Duration = Duration::from_hours(12);
/// Most sessions of one token. A further login ends the oldest of them.
pub const SESSIONS_MAX: u32 = 100;
/// How exact a store knows when a session was last used. A finer time would cost a write for each call.
pub const SEEN_EVERY: Duration = Duration::from_mins(5);

/// A session to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The part of its secret that is not secret.
    pub id: Name,
    /// The id of the token that it was started with.
    pub token: Name,
    /// Its hash.
    pub hash: TokenHash,
    /// How long it lasts, by the store's clock. It ends with its token if that is earlier.
    pub ttl: Duration,
}

/// A session as a store keeps it, with its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The part of its secret that is not secret.
    pub id: Name,
    /// Its hash.
    pub hash: TokenHash,
    /// The token that it was started with.
    pub token: TokenRecord,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it ends: never later than its token.
    pub expires_at: Timestamp,
    /// When it was last used, at most [`SEEN_EVERY`] ago if it is in use.
    pub seen_at: Timestamp,
    /// The store's clock when this was read.
    pub read_at: Timestamp,
}

impl SessionRecord {
    /// How long it is still valid, by the store's clock; zero if it has ended.
    pub fn valid_for(&self) -> Duration {
        if self.token.is_expired { Duration::ZERO } else { self.expires_at.since(self.read_at) }
    }

    /// Whether its use should be recorded again.
    pub fn is_unseen(&self) -> bool {
        self.read_at.since(self.seen_at) >= SEEN_EVERY
    }
}

/// The sessions of browsers, by their hashes.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Adds a session. If its token has [`SESSIONS_MAX`] sessions already, the oldest of them ends. `None` if
    /// the token does not exist or has expired, or the id is taken.
    async fn add(&self, session: &NewSession) -> Result<Option<SessionRecord>>;

    /// The newest sessions that have not ended, newest first: all, or those of one token.
    async fn list(&self, token: Option<&Name>, limit: u32) -> Result<Vec<SessionRecord>>;

    /// One session, also if it has expired. `None` if its token was revoked.
    async fn find(&self, id: &Name) -> Result<Option<SessionRecord>>;

    /// Records that a session was used just now.
    async fn see(&self, id: &Name) -> Result<()>;

    /// Ends a session; answers whether there was one.
    async fn end(&self, id: &Name) -> Result<bool>;
}

/// A store that keeps no sessions.
pub(crate) struct NoSessions;

impl NoSessions {
    fn refuse<T>() -> Result<T> {
        Err(Error::Unsupported("this store keeps no sessions".to_owned()))
    }
}

#[async_trait]
impl Sessions for NoSessions {
    async fn add(&self, _: &NewSession) -> Result<Option<SessionRecord>> {
        Self::refuse()
    }

    async fn list(&self, _: Option<&Name>, _: u32) -> Result<Vec<SessionRecord>> {
        Self::refuse()
    }

    async fn find(&self, _: &Name) -> Result<Option<SessionRecord>> {
        Self::refuse()
    }

    async fn see(&self, _: &Name) -> Result<()> {
        Self::refuse()
    }

    async fn end(&self, _: &Name) -> Result<bool> {
        Self::refuse()
    }
}
