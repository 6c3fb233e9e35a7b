//! A cache of tokens or sessions that were just looked up, so that not every call asks the store.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use windlass_core::Name;

/// How long the store's answer about a token is used. A token that was revoked through another server stops
/// working after this time; one that was revoked through this server stops at once.
pub const REMEMBERED: Duration = Duration::from_secs(5);

/// Most entries of the cache: all tokens that a store keeps, and more unknown ones than are looked up in that
/// time.
const KNOWN_MAX: usize = 2_000;

/// What the store answered about an id; `None` if there is no such thing.
type Heard<T> = Option<T>;

pub(super) struct Known<T> {
    /// By id: what the store said, and until when that is used.
    entries: HashMap<Name, (Heard<T>, Instant)>,
    /// When an entry was last forgotten. An answer to a question asked before that may still contain it.
    forgot_at: Option<Instant>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), forgot_at: None }
    }
}

impl<T: Clone> Known<T> {
    /// The cached answer about an id, if it is fresh enough.
    pub(super) fn get(&self, id: &Name, now: Instant) -> Option<Heard<T>> {
        let (heard, until) = self.entries.get(id)?;
        (now < *until).then(|| heard.clone())
    }

    /// Caches the store's answer to a question that was asked at this time, for at most [`REMEMBERED`].
    pub(super) fn put(&mut self, id: Name, heard: Heard<T>, asked_at: Instant, keep: Duration) {
        if self.forgot_at.is_some_and(|at| asked_at <= at) {
            return;
        }
        if self.entries.len() >= KNOWN_MAX {
            self.entries.retain(|_, (_, until)| asked_at < *until);
        }
        if self.entries.len() >= KNOWN_MAX {
            self.entries.clear();
        }
        self.entries.insert(id, (heard, asked_at + keep.min(REMEMBERED)));
    }

    /// Forgets one id.
    pub(super) fn forget(&mut self, id: &Name, now: Instant) {
        self.forgot_at = Some(now);
        self.entries.remove(id);
    }

    /// Forgets everything of which this is true.
    pub(super) fn forget_if(&mut self, now: Instant, is_gone: impl Fn(&T) -> bool) {
        self.forgot_at = Some(now);
        self.entries.retain(|_, (heard, _)| !heard.as_ref().is_some_and(&is_gone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> Name {
        Name::new("token", format!("t{n}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_bounded_and_its_entries_expire() {
        let (mut known, start) = (Known::<u32>::default(), Instant::now());
        for n in 0..KNOWN_MAX * 3 {
            known.put(id(n), None, start, REMEMBERED);
        }
        assert!(known.entries.len() <= KNOWN_MAX);
        let last = id(KNOWN_MAX * 3 - 1);
        assert_eq!(known.get(&last, start + REMEMBERED - Duration::from_millis(1)), Some(None));
        assert_eq!(known.get(&last, start + REMEMBERED), None);
        known.forget(&last, start);
        known.put(last.clone(), None, start, REMEMBERED);
        assert_eq!(known.get(&last, start), None, "asked before it was forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn an_entry_is_kept_no_longer_than_it_is_true() {
        let (mut known, start) = (Known::default(), Instant::now());
        let second = Duration::from_secs(1);
        known.put(id(1), Some(7), start, second);
        known.put(id(2), Some(8), start, REMEMBERED * 2);
        assert_eq!(known.get(&id(1), start + second / 2), Some(Some(7)));
        assert_eq!(known.get(&id(1), start + second), None);
        assert_eq!(known.get(&id(2), start + REMEMBERED), None);
        known.forget_if(start, |value| *value == 8);
        assert_eq!((known.get(&id(2), start), known.get(&id(1), start)), (None, Some(Some(7))));
    }
}
