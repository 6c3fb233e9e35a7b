//! When each token was last used at this process: kept in memory, so that no call costs the store a write.

use std::collections::HashMap;

use windlass_core::{Name, Timestamp};

/// Most tokens that are remembered: all that a store keeps, and as many that were revoked elsewhere.
const USED_MAX: usize = 2_000;

/// When tokens were last used.
#[derive(Debug, Default)]
pub(super) struct Used(HashMap<Name, Timestamp>);

impl Used {
    pub(super) fn note(&mut self, token: &Name, at: Timestamp) {
        if let Some(last) = self.0.get_mut(token) {
            *last = at.max(*last);
            return;
        }
        if self.0.len() >= USED_MAX {
            let oldest = self.0.iter().min_by_key(|(_, at)| **at).map(|(token, _)| token.clone());
            oldest.map(|token| self.0.remove(&token));
        }
        self.0.insert(token.clone(), at);
    }

    pub(super) fn last(&self, token: &Name) -> Option<Timestamp> {
        self.0.get(token).copied()
    }

    pub(super) fn forget(&mut self, token: &Name) {
        self.0.remove(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_that_was_unused_for_longest_makes_room() {
        let mut used = Used::default();
        let name = |n: usize| Name::new("token", n.to_string()).unwrap();
        for n in 0..=USED_MAX {
            used.note(&name(n), Timestamp::from_ms(n as i64));
        }
        assert_eq!((used.0.len(), used.last(&name(0))), (USED_MAX, None));
        used.note(&name(5), Timestamp::from_ms(1));
        assert_eq!(
            used.last(&name(5)),
            Some(Timestamp::from_ms(5)),
            "a clock that goes back changes nothing"
        );
        used.forget(&name(5));
        assert_eq!(used.last(&name(5)), None);
    }
}
