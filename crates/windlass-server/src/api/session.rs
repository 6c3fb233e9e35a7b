//! Sessions of browsers.

use serde::{Deserialize, Serialize};
use windlass_core::{Name, SessionRecord, Timestamp};

/// A token to log in with.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The token with its secret.
    pub token: String,
}

impl std::fmt::Debug for LoginRequest {
    /// Without the secret, so that no log can hold it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginRequest").finish_non_exhaustive()
    }
}

/// A session, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id, by which it is ended.
    pub id: Name,
    /// The id of the token that it was started with.
    pub token: Name,
    /// What that token is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// What it may do: what its token may.
    pub scopes: Vec<String>,
    /// For which queues; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Name>,
    /// For which kinds; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Name>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it was last used; up to five minutes too early.
    pub last_seen_at: Timestamp,
    /// Whether it is the session of this call.
    pub current: bool,
}

impl SessionView {
    /// A session, as a caller sees it.
    pub(crate) fn of(session: SessionRecord, current: bool) -> Self {
        let token = session.token;
        Self {
            id: session.id,
            token: token.id,
            name: token.name,
            scopes: token.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            queues: token.bound.queues,
            kinds: token.bound.kinds,
            created_at: session.created_at,
            expires_at: session.expires_at,
            last_seen_at: session.seen_at,
            current,
        }
    }
}

/// The newest sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// The sessions, newest first.
    pub sessions: Vec<SessionView>,
    /// Whether there are older ones.
    pub more: bool,
}

/// A session that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Its id.
    pub id: Name,
}

/// The answer to a logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOut {
    /// Whether the browser had a session.
    pub ended: bool,
}
