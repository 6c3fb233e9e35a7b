//! What a gRPC call is about, for the audit. The path of the call names only the method, so the method that
//! reads the message adds names and ids from it.

use std::sync::{Arc, OnceLock};

use tonic::Request;

/// Most characters of a subject. Names and ids are shorter, but an invalid one may have any length.
const CHARS_MAX: usize = 200;
/// Most ids of a bulk call that a subject names.
const IDS_MAX: usize = 10;

/// A place for what a call is about, in the extensions of a request that is audited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject(Arc<OnceLock<String>>);

impl Subject {
    /// The subject; empty if none was recorded.
    pub(crate) fn get(&self) -> &str {
        self.0.get().map(String::as_str).unwrap_or_default()
    }

    /// Records what a call is about, if the call is audited.
    pub(crate) fn tell<T>(request: &Request<T>, about: impl FnOnce(&T) -> String) {
        if let Some(Self(place)) = request.extensions().get::<Self>() {
            let text = about(request.get_ref()).chars().take(CHARS_MAX).collect();
            // The first subject stays.
            let _ = place.set(text);
        }
    }

    /// The first ids, and how many more there are.
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
    fn only_audited_calls_have_a_subject_and_it_is_bounded() {
        let mut request = Request::new("q".repeat(10_000));
        Subject::tell(&request, |_| unreachable!("this call is not audited"));
        let subject = Subject::default();
        request.extensions_mut().insert(subject.clone());
        Subject::tell(&request, Clone::clone);
        assert_eq!(subject.get(), "q".repeat(CHARS_MAX));
    }

    #[test]
    fn a_subject_names_the_first_ids_and_counts_the_rest() {
        assert_eq!(Subject::ids(["a", "b"].into_iter()), "a b");
        assert_eq!(Subject::ids(["a"; 12].into_iter()), "a a a a a a a a a a and 2 more");
    }
}
