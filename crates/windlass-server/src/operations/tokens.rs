//! Tokens: make, list, revoke.

use windlass_core::{
    Error, Name, NewToken, Result as CoreResult, Scope, Scopes,
    token::{BOUND_MAX, Bound},
};

use super::{Operations, Result, duration};
use crate::{
    access::token,
    api::{ErrorCode, ErrorDetail, TokenCreated, TokenRequest, TokenRevoked, Tokens},
};

impl Operations {
    /// Makes a token. Its secret is in the answer and nowhere else.
    pub async fn create_token(&self, request: TokenRequest) -> Result<TokenCreated> {
        let scopes = request.scopes.iter().map(|scope| scope.parse()).collect::<CoreResult<Vec<Scope>>>()?;
        if scopes.is_empty() {
            return Err(ErrorDetail::invalid("scopes must not be empty")
                .hint("some of enqueue, work, read, admin; admin includes the others"));
        }
        let ttl = request.expires_in_ms.map(|ms| duration("expires_in_ms", ms)).transpose()?;
        if ttl.is_some_and(|ttl| ttl.is_zero()) {
            return Err(ErrorDetail::invalid("expires_in_ms must be more than 0"));
        }
        request.name.as_ref().map_or(Ok(()), |name| name.check("name"))?;
        let fresh = token::make()?;
        let scopes = Scopes::of(scopes);
        let bound = Bound { queues: request.queues, kinds: request.kinds };
        check_bound(scopes, &bound)?;
        let new = NewToken { id: fresh.id, name: request.name, hash: fresh.hash, scopes, bound, ttl };
        let kept = self.store.tokens().add(&new).await?;
        Ok(TokenCreated { token: fresh.text, view: kept.into() })
    }

    /// Every token, oldest first, without secrets.
    pub async fn tokens(&self) -> Result<Tokens> {
        let tokens = self.store.tokens().list().await?;
        Ok(Tokens { tokens: tokens.into_iter().map(Into::into).collect() })
    }

    /// Revokes the token of an id, or of a name that only one token has.
    pub async fn revoke_token(&self, id_or_name: &str) -> Result<TokenRevoked> {
        let wanted = Name::new("token", id_or_name)?;
        let tokens = self.store.tokens().list().await?;
        let by_id = tokens.iter().find(|token| token.id == wanted);
        let mut by_name = tokens.iter().filter(|token| token.name.as_ref() == Some(&wanted));
        let found = match (by_id, by_name.next(), by_name.next()) {
            (Some(token), ..) | (None, Some(token), None) => token,
            (None, Some(_), Some(_)) => {
                return Err(ErrorDetail::new(
                    ErrorCode::Conflict,
                    format!("more than one token is called {wanted}"),
                )
                .hint("use its id instead: `windlass token ls` shows them"));
            }
            (None, None, _) => return Err(Error::NotFound(format!("token {wanted}")).into()),
        };
        if !self.store.tokens().remove(&found.id).await? {
            return Err(Error::NotFound(format!("token {wanted}")).into());
        }
        Ok(TokenRevoked { id: found.id.clone(), name: found.name.clone() })
    }
}

/// Refuses a bound that would have no effect: the scopes `read` and `admin` are not restricted by one.
fn check_bound(scopes: Scopes, bound: &Bound) -> Result<()> {
    if bound.queues.len() > BOUND_MAX || bound.kinds.len() > BOUND_MAX {
        return Err(ErrorDetail::invalid(format!(
            "a token names at most {BOUND_MAX} queues and {BOUND_MAX} kinds"
        )));
    }
    if !bound.is_open() && scopes.allow(Scope::Read) {
        return Err(ErrorDetail::invalid("queues and kinds bind the scopes enqueue and work only")
            .hint("make another token for read or admin"));
    }
    Ok(())
}
