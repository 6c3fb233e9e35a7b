//! Sessions of browsers: list, end.

use windlass_core::{Error, Name};

use super::{Operations, Result};
use crate::{
    access::Caller,
    api::{SessionEnded, SessionView, Sessions},
};

/// Most sessions of a list.
const SESSIONS_LISTED: u32 = 1_000;

impl Operations {
    /// The newest sessions: all for an administrator, and for others those of their own token.
    pub async fn sessions(&self, caller: &Caller) -> Result<Sessions> {
        let own = match (caller.is_admin(), caller.token()) {
            (true, _) => None,
            (false, Some(token)) => Some(token),
            (false, None) => return Ok(Sessions::default()),
        };
        let mut found = self.store.tokens().sessions().list(own, SESSIONS_LISTED + 1).await?;
        let more = found.len() > SESSIONS_LISTED as usize;
        found.truncate(SESSIONS_LISTED as usize);
        let view = |session: windlass_core::SessionRecord| {
            let current = caller.session() == Some(&session.id);
            SessionView::of(session, current)
        };
        Ok(Sessions { sessions: found.into_iter().map(view).collect(), more })
    }

    /// Ends a session: any for an administrator, and for others one of their own token. A session of another
    /// token is answered like one that does not exist.
    pub async fn end_session(&self, caller: &Caller, id: &str) -> Result<SessionEnded> {
        let id = Name::new("session", id)?;
        let sessions = self.store.tokens().sessions();
        let found = sessions.find(&id).await?;
        let is_own = |token: &Name| caller.is_admin() || caller.token() == Some(token);
        if found.is_some_and(|session| is_own(&session.token.id)) && sessions.end(&id).await? {
            return Ok(SessionEnded { id });
        }
        Err(Error::NotFound(format!("session {id}")).into())
    }
}
