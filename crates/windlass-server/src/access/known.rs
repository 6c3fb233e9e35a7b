//! A cache of tokens that were just looked up, so that not every call asks the store.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use windlass_core::{Name, TokenRecord};

/// How long the store's answer about a token is used. A token that was revoked through another server stops
/// working after this time; one that was revoked through this server stops at once.
pub const REMEMBERED: Duration = Duration::from_secs(5);

/// Most tokens in the cache: all that a store keeps, and more unknown ones than are looked up in that time.
const KNOWN_MAX: usize = 2_000;

/// The store's answer about an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// There is such a token.
    Token(Box<TokenRecord>),
    /// There is none.
    Nothing,
}

#[derive(Default)]
pub(super) struct Known {
    /// By id: what the store said, and when it was asked.
    tokens: HashMap<Name, (Heard, Instant)>,
    /// When a token was last forgotten. An answer to a question asked before that may still contain the
    /// token.
    forgot_at: Option<Instant>,
}

impl Known {
    /// The cached answer about a token, if it is fresh enough.
    pub(super) fn get(&self, id: &Name, now: Instant) -> Option<Heard> {
        let (heard, asked_at) = self.tokens.get(id)?;
        (now.duration_since(*asked_at) < REMEMBERED).then(|| heard.clone())
    }

    /// Caches the store's answer to a question that was asked at this time.
    pub(super) fn put(&mut self, id: Name, heard: Heard, asked_at: Instant) {
        if self.forgot_at.is_some_and(|at| asked_at <= at) {
            return;
        }
        if self.tokens.len() >= KNOWN_MAX {
            self.tokens.retain(|_, (_, at)| asked_at.saturating_duration_since(*at) < REMEMBERED);
        }
        if self.tokens.len() >= KNOWN_MAX {
            self.tokens.clear();
        }
        self.tokens.insert(id, (heard, asked_at));
    }

    pub(super) fn forget(&mut self, id: &Name, now: Instant) {
        self.forgot_at = Some(now);
        self.tokens.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_bounded_and_its_entries_expire() {
        let id = |n: usize| Name::new("token", format!("t{n}")).unwrap();
        let (mut known, start) = (Known::default(), Instant::now());
        for n in 0..KNOWN_MAX * 3 {
            known.put(id(n), Heard::Nothing, start);
        }
        assert!(known.tokens.len() <= KNOWN_MAX);
        let last = id(KNOWN_MAX * 3 - 1);
        assert_eq!(known.get(&last, start + REMEMBERED - Duration::from_millis(1)), Some(Heard::Nothing));
        assert_eq!(known.get(&last, start + REMEMBERED), None);
        known.forget(&last, start);
        known.put(last.clone(), Heard::Nothing, start);
        assert_eq!(known.get(&last, start), None, "asked before it was forgotten");
    }
}
