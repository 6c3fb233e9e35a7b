//! Tokens of the API: what a caller that shows one may do. A store keeps the hash only; the secret is shown
//! once, to the user who made the token.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    name::Name,
    time::Timestamp,
};

/// Most tokens that a store keeps, expired ones included, so that a list fits one answer.
pub const TOKENS_MAX: u32 = 1_000;

/// What a token lets its bearer do. Only `admin` includes others, and it includes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Enqueue tasks.
    Enqueue,
    /// Be a worker: claim tasks, and settle those that are leased to it.
    Work,
    /// Read everything, also payloads and results, and change nothing.
    Read,
    /// Everything: the other three, and all that changes, stops or removes something.
    Admin,
}

impl Scope {
    /// Every scope, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Enqueue, Self::Work, Self::Read, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            Error::invalid(format!("scope must be enqueue, work, read or admin, not {shown:?}"))
        })
    }
}

/// A set of scopes. Its text is `enqueue,read`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// No scope at all.
    pub const NONE: Self = Self(0);

    /// The set of these.
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// Whether these scopes allow what needs `scope`: it is in the set, or `admin` is.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in it, as they were given.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// Reads what a store kept. A scope that this program does not know allows nothing.
    pub fn from_stored(text: &str) -> Self {
        Self::of(text.split(',').filter_map(|scope| scope.parse().ok()))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for Scopes {
    type Err = Error;

    /// Reads `enqueue,read`; at least one scope, each known.
    fn from_str(text: &str) -> Result<Self> {
        let scopes = text.split(',').map(|scope| scope.trim().parse()).collect::<Result<Vec<Scope>>>()?;
        Ok(Self::of(scopes))
    }
}

/// The queues and kinds that a token is limited to. Empty lists limit nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Only these queues; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Name>,
    /// Only these kinds; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Name>,
}

/// The stored form of a token's limits.
#[derive(Serialize, Deserialize)]
struct StoredBound {
    scopes: String,
    #[serde(flatten)]
    bound: Bound,
}

/// Replaces the scopes of a limited token. An older program that does not know limits reads it as an unknown
/// scope, which allows nothing.
const BOUND: &str = "bound";

/// Most queues and most kinds that a token may name.
pub const BOUND_MAX: usize = 100;

impl Bound {
    /// Whether it limits nothing.
    pub fn is_open(&self) -> bool {
        self.queues.is_empty() && self.kinds.is_empty()
    }

    /// Whether tasks of this queue are allowed.
    pub fn has_queue(&self, queue: &Name) -> bool {
        self.queues.is_empty() || self.queues.contains(queue)
    }

    /// Whether tasks of this kind are allowed.
    pub fn has_kind(&self, kind: &Name) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }

    /// What a store keeps: a text for the scopes, and a second text if the token is limited. The hazard: an
    /// older program would ignore the limits. So the first text of a limited token allows nothing in such a
    /// program.
    pub fn to_stored(&self, scopes: Scopes) -> (String, Option<String>) {
        if self.is_open() {
            return (scopes.to_string(), None);
        }
        let stored = StoredBound { scopes: scopes.to_string(), bound: self.clone() };
        (BOUND.to_owned(), serde_json::to_string(&stored).ok())
    }

    /// Reads what a store kept. A text that cannot be read allows nothing.
    pub fn from_stored(scopes: &str, bound: Option<&str>) -> (Scopes, Self) {
        let Some(bound) = bound else { return (Scopes::from_stored(scopes), Self::default()) };
        match serde_json::from_str::<StoredBound>(bound) {
            Ok(stored) => (Scopes::from_stored(&stored.scopes), stored.bound),
            Err(_) => (Scopes::NONE, Self::default()),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[Name]| names.iter().map(Name::as_str).collect::<Vec<_>>().join(",");
        match (self.queues.is_empty(), self.kinds.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => write!(f, "queue {}", list(&self.queues)),
            (true, false) => write!(f, "kind {}", list(&self.kinds)),
            (false, false) => write!(f, "queue {}, kind {}", list(&self.queues), list(&self.kinds)),
        }
    }
}

/// SHA-256 of a whole token. Compared in constant time: see its `PartialEq`.
#[derive(Clone, Copy)]
pub struct TokenHash(pub [u8; 32]);

impl PartialEq for TokenHash {
    /// Compares every byte, also after a difference, so that the time does not depend on where the difference is.
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differs, (one, two)| differs | (one ^ two)) == 0
    }
}

impl Eq for TokenHash {}

impl fmt::Debug for TokenHash {
    /// Hides the hash, so that no log shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A token to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The part of the token that is not secret.
    pub id: Name,
    /// A name for people. Two tokens may share one, so that a new token can replace an old one.
    pub name: Option<Name>,
    /// Its hash.
    pub hash: TokenHash,
    /// What it lets its bearer do.
    pub scopes: Scopes,
    /// The queues and kinds that it is limited to.
    pub bound: Bound,
    /// How long it is valid, by the store's clock; without end if absent.
    pub ttl: Option<Duration>,
}

/// A token as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The part of the token that is not secret.
    pub id: Name,
    /// A name for people.
    pub name: Option<Name>,
    /// Its hash.
    pub hash: TokenHash,
    /// What it lets its bearer do.
    pub scopes: Scopes,
    /// The queues and kinds that it is limited to.
    pub bound: Bound,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being valid.
    pub expires_at: Option<Timestamp>,
    /// Whether that time has come, by the store's clock.
    pub is_expired: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_allows_itself_and_only_admin_allows_the_others() {
        for held in Scope::ALL {
            for needed in Scope::ALL {
                let expected = held == needed || held == Scope::Admin;
                assert_eq!(Scopes::of([held]).allow(needed), expected, "{held} for {needed}");
            }
        }
        assert!(Scope::ALL.into_iter().all(|scope| !Scopes::NONE.allow(scope)));
    }

    #[test]
    fn unknown_scopes_are_refused_or_allow_nothing() {
        let scopes: Scopes = "read, enqueue".parse().unwrap();
        assert_eq!(scopes.to_string(), "enqueue,read");
        assert_eq!(Scopes::from_stored("enqueue,read"), scopes);
        assert!("read,root".parse::<Scopes>().is_err());
        assert!("".parse::<Scopes>().is_err());
        assert_eq!(Scopes::from_stored("root"), Scopes::NONE);
    }

    #[test]
    fn a_bound_token_means_nothing_to_a_program_without_bounds() {
        let name = |text: &str| Name::new("name", text).unwrap();
        let work = Scopes::of([Scope::Work]);
        let bound = Bound { queues: vec![name("mail"), name("a,b")], kinds: Vec::new() };
        let (scopes, text) = bound.to_stored(work);
        assert_eq!(Scopes::from_stored(&scopes), Scopes::NONE);
        assert_eq!(Bound::from_stored(&scopes, text.as_deref()), (work, bound.clone()));
        assert_eq!(Bound::default().to_stored(work), ("work".to_owned(), None));
        assert_eq!(Bound::from_stored("work", None), (work, Bound::default()));
        assert_eq!(Bound::from_stored("work", Some("{")), (Scopes::NONE, Bound::default()));
        assert!(bound.has_queue(&name("mail")) && !bound.has_queue(&name("b")) && bound.has_kind(&name("k")));
        assert_eq!(bound.to_string(), "queue mail,a,b");
    }

    #[test]
    fn hashes_are_compared_to_the_last_byte() {
        let hash = TokenHash([7; 32]);
        assert_eq!(hash, TokenHash([7; 32]));
        for place in 0..32 {
            let mut other = hash;
            other.0[place] ^= 1;
            assert_ne!(hash, other, "{place}");
        }
    }

    #[test]
    fn a_hash_is_not_shown() {
        assert_eq!(format!("{:?}", TokenHash([7; 32])), "…");
    }
}
