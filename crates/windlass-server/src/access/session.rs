//! Sessions of browsers: a login with a token starts one. It is the same on every server of a store, and ends
//! with its token.

use std::{fmt, time::Duration};

use tokio::time::Instant;
use windlass_core::{Name, NewSession, SessionRecord, session::SESSION_TTL};

use super::{Access, Caller, REMEMBERED, STRANGERS_PER_S, lock, token};
use crate::api::{ErrorCode, ErrorDetail};

/// How often all sessions are listed while guesses use up the look-ups.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// Sessions of such a list, the newest. A store has few more: browsers of people start them.
const LISTED_MAX: u32 = 1_000;

/// Whether a browser's request comes from a page of this server. A page can choose neither of the headers
/// that tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// From a page of this server.
    Own,
    /// The request does not say: it comes from a program, or from an old browser.
    Unsaid,
    /// From a page of another origin.
    Foreign,
}

/// A session that was just started.
pub struct Login {
    /// The text for the browser's cookie. It is not kept anywhere else.
    pub secret: String,
    /// What the store keeps.
    pub record: SessionRecord,
}

impl fmt::Debug for Login {
    /// Without the secret, so that no log can hold it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Access {
    /// Starts a session with a token.
    ///
    /// # Errors
    /// As for a call with this token: `unauthorized` (401), `rate_limited` (429), or the store's error.
    pub async fn log_in(&self, text: &str) -> Result<Login, ErrorDetail> {
        let token = self.verify(text).await?;
        let caller = Caller::of_token(token.clone());
        self.count(&caller)?;
        let Some(store) = &self.store else { return Err(ended()) };
        let fresh = token::make_session()?;
        let (id, now) = (fresh.id.clone(), Instant::now());
        let new = NewSession { id: fresh.id, token: token.id, hash: fresh.hash, ttl: SESSION_TTL };
        match store.tokens().sessions().add(&new).await? {
            Some(record) => {
                lock(&self.sessions).put(id, Some(record.clone()), now, record.valid_for());
                Ok(Login { secret: fresh.text, record })
            }
            None => Err(super::unauthorized("the token was revoked or has expired")),
        }
    }

    /// The session of a cookie's text, if it has not ended.
    ///
    /// # Errors
    /// `unauthorized` (401), `rate_limited` (429), or the store's error.
    pub(crate) async fn session(&self, text: &str) -> Result<SessionRecord, ErrorDetail> {
        let id = token::session_id_of(text).ok_or_else(ended)?;
        let now = Instant::now();
        let remembered = lock(&self.sessions).get(&id, now);
        let heard = match remembered {
            Some(heard) => heard,
            None => self.look_up_session(id, now).await?,
        };
        match heard {
            Some(record) if token::is_of(text, record.hash) && !record.valid_for().is_zero() => Ok(record),
            _ => Err(ended()),
        }
    }

    /// Asks the store. A session is cached no longer than it is valid, so that it ends in time.
    async fn look_up_session(&self, id: Name, now: Instant) -> Result<Option<SessionRecord>, ErrorDetail> {
        let Some(store) = &self.store else { return Ok(None) };
        // Guessed sessions have a limit of their own: they must not shut out the bearers of tokens.
        if lock(&self.strange_sessions).take(now, STRANGERS_PER_S).is_err() {
            return self.look_through_sessions(&id).await.map(Some);
        }
        let heard = store.tokens().sessions().find(&id).await?;
        let mut keep = REMEMBERED;
        if let Some(record) = &heard {
            lock(&self.strange_sessions).give_back();
            if !record.valid_for().is_zero() {
                keep = keep.min(record.valid_for());
                self.see(record).await;
            }
        }
        lock(&self.sessions).put(id, heard.clone(), now, keep);
        Ok(heard)
    }

    /// The session among all that exist, when guesses have used up the look-ups of this moment. A caller without
    /// any right can send guesses, and they must not shut out real sessions. One list each second finds those.
    async fn look_through_sessions(&self, id: &Name) -> Result<SessionRecord, ErrorDetail> {
        let too_many = || {
            ErrorDetail::new(ErrorCode::RateLimited, "too many unknown sessions at once")
                .hint("try again shortly")
        };
        let Some(store) = &self.store else { return Err(ended()) };
        let mut listed_at = self.sessions_listed_at.lock().await;
        let now = Instant::now();
        // Another call may have listed them while this one waited.
        if let Some(heard) = lock(&self.sessions).get(id, now) {
            return heard.ok_or_else(ended);
        }
        if listed_at.is_some_and(|at| now < at + LIST_EVERY) {
            return Err(too_many());
        }
        *listed_at = Some(now);
        let mut found = None;
        for record in store.tokens().sessions().list(None, LISTED_MAX).await? {
            lock(&self.sessions).put(record.id.clone(), Some(record.clone()), now, record.valid_for());
            if record.id == *id {
                found = Some(record);
            }
        }
        drop(listed_at);
        let record = found.ok_or_else(too_many)?;
        self.see(&record).await;
        Ok(record)
    }

    /// Records the use of a session now and then. A store that cannot write must not end the session.
    async fn see(&self, record: &SessionRecord) {
        if let Some(store) = &self.store
            && record.is_unseen()
            && let Err(error) = store.tokens().sessions().see(&record.id).await
        {
            tracing::debug!(%error, "the use of a session could not be recorded");
        }
    }

    /// Forgets the cached answer for a session that was ended here, so that it stops at once.
    pub(crate) fn forget_session(&self, id: &Name) {
        lock(&self.sessions).forget(id, Instant::now());
    }

    /// Ends a session, here at once and on other servers within [`REMEMBERED`]; answers whether there was
    /// one.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn end_session(&self, id: &Name) -> Result<bool, ErrorDetail> {
        let Some(store) = &self.store else { return Ok(false) };
        let was_there = store.tokens().sessions().end(id).await?;
        self.forget_session(id);
        Ok(was_there)
    }
}

/// The refusal of a session.
pub(super) fn ended() -> ErrorDetail {
    ErrorDetail::new(ErrorCode::Unauthorized, "the session has ended, or was never started here")
        .hint("log in again: POST /v1/login with a token")
}

/// The refusal of a change by a page that is not of this server.
pub(crate) fn foreign_page() -> ErrorDetail {
    ErrorDetail::new(ErrorCode::Forbidden, "a session may change something only from a page of this server")
        .hint(
            "the request needs the Origin of this server, or Sec-Fetch-Site: same-origin; behind a proxy set public_url to the \
             address that browsers use; programs show a token instead: Authorization: Bearer TOKEN",
        )
}
