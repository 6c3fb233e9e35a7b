//! Tokens of the API.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, Timestamp, TokenRecord};

/// A token to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// What its bearer may do: some of `enqueue`, `work`, `read`, `admin`.
    pub scopes: Vec<String>,
    /// What it is called, for people. Two may share a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Queues that it is for, with the scopes `enqueue` and `work`; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Name>,
    /// Kinds that it is for, with the scopes `enqueue` and `work`; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Name>,
    /// How long it is valid; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenView {
    /// Its id, by which it is revoked.
    pub id: Name,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// What its bearer may do.
    pub scopes: Vec<String>,
    /// For which queues; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Name>,
    /// For which kinds; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Name>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it has expired.
    pub expired: bool,
    /// When a call with it, or with a session of it, was last made to the server that is asked; absent if none was
    /// since that server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

impl From<TokenRecord> for TokenView {
    fn from(token: TokenRecord) -> Self {
        Self {
            id: token.id,
            name: token.name,
            scopes: token.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            queues: token.bound.queues,
            kinds: token.bound.kinds,
            created_at: token.created_at,
            expires_at: token.expires_at,
            expired: token.is_expired,
            last_used_at: None,
        }
    }
}

/// Every token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The tokens, oldest first.
    pub tokens: Vec<TokenView>,
}

/// A token that was just made. This answer is the only one that contains its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreated {
    /// The token with its secret.
    pub token: String,
    /// What the server keeps of it.
    #[serde(flatten)]
    pub view: TokenView,
}

impl std::fmt::Debug for TokenCreated {
    /// Without the secret, so that no log can hold it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenCreated").field("view", &self.view).finish_non_exhaustive()
    }
}

/// A token that is no longer valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRevoked {
    /// Its id.
    pub id: Name,
    /// What it was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
}
