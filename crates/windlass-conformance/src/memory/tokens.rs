//! The tokens and sessions of the in-memory store.

use async_trait::async_trait;
use windlass_core::{Name, NewSession, NewToken, Result, SessionRecord, Sessions, TokenRecord, Tokens};

use super::MemoryStore;

#[async_trait]
impl Tokens for MemoryStore {
    async fn add(&self, token: &NewToken) -> Result<TokenRecord> {
        self.run(|model, now| model.add_token(now, token))?
    }

    async fn list(&self) -> Result<Vec<TokenRecord>> {
        self.run(|model, now| model.list_tokens(now))
    }

    async fn find(&self, id: &Name) -> Result<Option<TokenRecord>> {
        self.run(|model, now| model.find_token(now, id))
    }

    async fn remove(&self, id: &Name) -> Result<bool> {
        self.run(|model, _| model.remove_token(id))
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }
}

#[async_trait]
impl Sessions for MemoryStore {
    async fn add(&self, session: &NewSession) -> Result<Option<SessionRecord>> {
        self.run(|model, now| model.add_session(now, session))
    }

    async fn list(&self, token: Option<&Name>, limit: u32) -> Result<Vec<SessionRecord>> {
        self.run(|model, now| model.list_sessions(now, token, limit as usize))
    }

    async fn find(&self, id: &Name) -> Result<Option<SessionRecord>> {
        self.run(|model, now| model.find_session(now, id))
    }

    async fn see(&self, id: &Name) -> Result<()> {
        self.run(|model, now| model.see_session(now, id))
    }

    async fn end(&self, id: &Name) -> Result<bool> {
        self.run(|model, _| model.end_session(id))
    }
}
