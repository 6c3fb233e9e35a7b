//! Tokens of the API, by their hashes.

use windlass_core::{Error, Name, NewToken, Result, TokenRecord, token::TOKENS_MAX};

use crate::model::{Model, Now};

impl Model {
    /// Adds a token.
    pub fn add_token(&mut self, now: Now, token: &NewToken) -> Result<TokenRecord> {
        if self.tokens.len() >= TOKENS_MAX as usize || self.tokens.contains_key(&token.id) {
            let full = format!("the id is taken, or there are {TOKENS_MAX} tokens already");
            return Err(Error::Conflict(full));
        }
        let record = TokenRecord {
            id: token.id.clone(),
            name: token.name.clone(),
            hash: token.hash,
            scopes: token.scopes,
            bound: token.bound.clone(),
            created_at: now.wall,
            expires_at: token.ttl.map(|ttl| now.wall.after(ttl)),
            is_expired: false,
        };
        self.tokens.insert(token.id.clone(), record.clone());
        Ok(seen(now, &record))
    }

    /// Every token, oldest first.
    pub fn list_tokens(&self, now: Now) -> Vec<TokenRecord> {
        let mut tokens: Vec<_> = self.tokens.values().map(|token| seen(now, token)).collect();
        tokens.sort_by_key(|token| token.created_at);
        tokens
    }

    /// One token.
    pub fn find_token(&self, now: Now, id: &Name) -> Option<TokenRecord> {
        self.tokens.get(id).map(|token| seen(now, token))
    }

    /// Removes a token and its sessions.
    pub fn remove_token(&mut self, id: &Name) -> bool {
        self.sessions.retain(|session| session.token != *id);
        self.tokens.remove(id).is_some()
    }
}

fn seen(now: Now, token: &TokenRecord) -> TokenRecord {
    TokenRecord { is_expired: token.expires_at.is_some_and(|at| at <= now.wall), ..token.clone() }
}
