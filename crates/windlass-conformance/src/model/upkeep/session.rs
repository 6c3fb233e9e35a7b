//! Sessions of browsers, by their hashes.

use windlass_core::{Name, NewSession, SessionRecord, Timestamp, TokenHash, session::SESSIONS_MAX};

use crate::model::{Model, Now};

/// A session; the oldest is the first in the model's list.
#[derive(Debug, Clone)]
pub(in crate::model) struct Session {
    id: Name,
    pub(in crate::model) token: Name,
    hash: TokenHash,
    created_at: Timestamp,
    pub(in crate::model) expires_at: Timestamp,
    seen_at: Timestamp,
}

impl Model {
    /// Adds a session of a token that is valid, and ends the oldest one over the limit.
    pub fn add_session(&mut self, now: Now, new: &NewSession) -> Option<SessionRecord> {
        let token = self.find_token(now, &new.token).filter(|token| !token.is_expired)?;
        if self.sessions.iter().any(|session| session.id == new.id) {
            return None;
        }
        let ends = now.wall.after(new.ttl);
        self.sessions.push(Session {
            id: new.id.clone(),
            token: new.token.clone(),
            hash: new.hash,
            created_at: now.wall,
            expires_at: token.expires_at.map_or(ends, |at| at.min(ends)),
            seen_at: now.wall,
        });
        let own = self.sessions.iter().filter(|session| session.token == new.token).count();
        let mut surplus = own.saturating_sub(SESSIONS_MAX as usize);
        self.sessions.retain(|session| {
            let goes = surplus > 0 && session.token == new.token;
            surplus -= usize::from(goes);
            !goes
        });
        self.find_session(now, &new.id)
    }

    /// The newest sessions that have not ended, newest first.
    pub fn list_sessions(&self, now: Now, token: Option<&Name>, limit: usize) -> Vec<SessionRecord> {
        self.sessions
            .iter()
            .rev()
            .filter(|session| token.is_none_or(|token| session.token == *token))
            .filter(|session| session.expires_at > now.wall)
            .filter_map(|session| self.seen_session(now, session))
            .take(limit)
            .collect()
    }

    /// One session.
    pub fn find_session(&self, now: Now, id: &Name) -> Option<SessionRecord> {
        let session = self.sessions.iter().find(|session| session.id == *id)?;
        self.seen_session(now, session)
    }

    fn seen_session(&self, now: Now, session: &Session) -> Option<SessionRecord> {
        Some(SessionRecord {
            id: session.id.clone(),
            hash: session.hash,
            token: self.find_token(now, &session.token)?,
            created_at: session.created_at,
            expires_at: session.expires_at,
            seen_at: session.seen_at,
            read_at: now.wall,
        })
    }

    /// Records that a session was used.
    pub fn see_session(&mut self, now: Now, id: &Name) {
        for session in self.sessions.iter_mut().filter(|session| session.id == *id) {
            session.seen_at = now.wall;
        }
    }

    /// Ends a session.
    pub fn end_session(&mut self, id: &Name) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.id != *id);
        self.sessions.len() < before
    }
}
