//! Tokens of the API: what a caller who shows one may do. A store keeps the hash only; the secret is shown once, to whoever
//! made it.

use std::{fmt, str::FromStr, time::Duration};

use crate::{
    error::{Error, Result},
    name::Name,
    time::Timestamp,
};

/// Tokens that a store keeps, expired ones too: a list fits one answer.
pub const TOKENS_MAX: u32 = 1_000;

/// What a token lets its bearer do. Only `admin` includes others, and it includes all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Put tasks in.
    Enqueue,
    /// Be a worker: claim tasks, and settle those that are leased to it.
    Work,
    /// Look at everything, payloads and results too, and change nothing.
    Read,
    /// Everything: the other three, and whatever changes, stops or removes something.
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

    /// Whether these let their bearer do what needs `scope`: it is among them, or `admin` is.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in it, as they were given.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// Reads what a store kept. A scope that this program does not know lets nobody do anything here.
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

/// SHA-256 of a whole token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl fmt::Debug for TokenHash {
    /// Not shown, so that no log can.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A token to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The part of it that is no secret.
    pub id: Name,
    /// What it is called, for people. Two may share a name, so that one can take over from the other.
    pub name: Option<Name>,
    /// Its hash.
    pub hash: TokenHash,
    /// What it lets its bearer do.
    pub scopes: Scopes,
    /// How long it is good for, by the store's clock; for ever if absent.
    pub ttl: Option<Duration>,
}

/// A token as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The part of it that is no secret.
    pub id: Name,
    /// What it is called.
    pub name: Option<Name>,
    /// Its hash.
    pub hash: TokenHash,
    /// What it lets its bearer do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is good for nothing.
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
    fn scopes_are_read_as_they_are_written_and_unknown_ones_are_refused_or_worth_nothing() {
        let scopes: Scopes = "read, enqueue".parse().unwrap();
        assert_eq!(scopes.to_string(), "enqueue,read");
        assert_eq!(Scopes::from_stored("enqueue,read"), scopes);
        assert!("read,root".parse::<Scopes>().is_err());
        assert!("".parse::<Scopes>().is_err());
        assert_eq!(Scopes::from_stored("root"), Scopes::NONE);
    }

    #[test]
    fn a_hash_is_not_shown() {
        assert_eq!(format!("{:?}", TokenHash([7; 32])), "…");
    }
}
