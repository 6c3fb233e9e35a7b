//! What a call of gRPC is about. Its path names only the method; whoever reads its message tells the rest to the audit.

use std::sync::{Arc, OnceLock};

use tonic::Request;

/// Characters of a subject that are told: names and ids are shorter, and whatever is not one may be of any length.
const CHARS_MAX: usize = 200;
/// Ids of a bulk call that are told.
const IDS_MAX: usize = 10;

/// A place for what a call is about, in the extensions of a request that is audited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject(Arc<OnceLock<String>>);

impl Subject {
    /// What was told; empty if nothing was.
    pub(crate) fn get(&self) -> &str {
        self.0.get().map(String::as_str).unwrap_or_default()
    }

    /// Tells what a call is about, if it is audited.
    pub(crate) fn tell<T>(request: &Request<T>, about: impl FnOnce(&T) -> String) {
        if let Some(Self(place)) = request.extensions().get::<Self>() {
            let text = about(request.get_ref()).chars().take(CHARS_MAX).collect();
            // Whoever told first knew best.
            let _ = place.set(text);
        }
    }

    /// Some ids, and how many there are beside them.
    pub(crate) fn ids<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> String {
        let more = ids.len().saturating_sub(IDS_MAX);
        let named: Vec<_> = ids.take(IDS_MAX).collect();
        let named = named.join(" ");
        if more == 0 { named } else { format!("{named} and {more} more") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_told_of_audited_calls_only_and_cut_to_a_bound() {
        let mut request = Request::new("q".repeat(10_000));
        Subject::tell(&request, |_| unreachable!("nobody wants to know"));
        let subject = Subject::default();
        request.extensions_mut().insert(subject.clone());
        Subject::tell(&request, Clone::clone);
        assert_eq!(subject.get(), "q".repeat(CHARS_MAX));
    }

    #[test]
    fn of_many_ids_some_are_named_and_the_rest_is_counted() {
        assert_eq!(Subject::ids(["a", "b"].into_iter()), "a b");
        assert_eq!(Subject::ids(["a"; 12].into_iter()), "a a a a a a a a a a and 2 more");
    }
}
