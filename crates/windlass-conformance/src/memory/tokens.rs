//! The tokens of the in-memory store.

use async_trait::async_trait;
use windlass_core::{Name, NewToken, Result, TokenRecord, Tokens};

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
}
