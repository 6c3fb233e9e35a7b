//! Why a task died, as its error says it without what differs from task to task.

/// Characters of an error that make its cause.
const CAUSE_CHARS: usize = 200;
/// A word with a digit in it that is at least so long is an id.
const ID_MIN_CHARS: usize = 8;
/// The cause of a task that keeps no error.
const NO_ERROR: &str = "no reason kept";

/// The error without what differs from task to task: numbers and ids become `#`. A status code stays, because
/// 404 and 503 are different causes.
///
/// ```
/// use windlass_core::store::cause_of;
/// assert_eq!(cause_of(Some("no user 42")), "no user #");
/// assert_eq!(cause_of(Some("http 503 after 31 ms")), "http 503 after # ms");
/// ```
pub fn cause_of(error: Option<&str>) -> String {
    let mut cause = String::new();
    let mut status_follows = false;
    for word in words(error.unwrap_or(NO_ERROR)) {
        let is_word = word.chars().next().is_some_and(char::is_alphanumeric);
        if !is_word {
            cause.push_str(word);
            continue;
        }
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        let is_status =
            status_follows && word.len() == 3 && word.chars().all(|letter| letter.is_ascii_digit());
        status_follows = ["http", "status", "code"].iter().any(|name| word.eq_ignore_ascii_case(name));
        if !has_digit || is_status {
            cause.push_str(word);
        } else if word.chars().count() >= ID_MIN_CHARS {
            cause.push('#');
        } else {
            let mut digits = word.split(|letter: char| letter.is_ascii_digit());
            cause.push_str(digits.next().unwrap_or_default());
            let rest: Vec<_> = digits.filter(|piece| !piece.is_empty()).collect();
            cause.push('#');
            cause.push_str(&rest.join("#"));
        }
    }
    cause.chars().take(CAUSE_CHARS).collect()
}

/// How every error with this cause begins: a store compares it before it reads the whole error. `None` if a
/// task without an error may have this cause.
pub fn beginning_of(cause: &str) -> Option<&str> {
    if cause == NO_ERROR {
        return None;
    }
    Some(cause.split('#').next().unwrap_or_default())
}

/// Runs of letters and digits, and the characters between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest
            .find(|letter: char| letter.is_alphanumeric() != first.is_alphanumeric())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(error: &str) -> String {
        cause_of(Some(error))
    }

    #[test]
    fn numbers_and_ids_do_not_make_a_cause() {
        for (error, same) in [
            ("connect to 10.0.0.7:8080 failed", "connect to 10.1.2.3:443 failed"),
            ("no user 42", "no user 7"),
            ("order 01JD3M8K2ZQ4R is gone", "order 01JD3M8K2ZQ5T is gone"),
            ("key 3f2a9c1d77aa0b42 expired", "key 00ff00ff00ff00ff expired"),
            ("took 31s", "took 5s"),
        ] {
            assert_eq!(cause(error), cause(same));
        }
        assert_eq!(cause("no user 42"), "no user #");
        assert_eq!(cause("täglich: größer als 7 %"), "täglich: größer als # %");
    }

    #[test]
    fn a_status_is_part_of_the_cause() {
        assert_ne!(cause("http 404 from the target"), cause("http 503 from the target"));
        assert_eq!(cause("status: 404 after 31 ms"), "status: 404 after # ms");
    }

    #[test]
    fn every_error_begins_as_its_cause_does() {
        let long = "größer ".repeat(100);
        for error in ["", "7", "a #1", "v2x is old", "http 404 at 01JD3M8K2ZQ4R", "no reason", long.as_str()]
        {
            let cause = cause(error);
            assert!(error.starts_with(beginning_of(&cause).unwrap()), "{error:?} has the cause {cause:?}");
        }
        assert_eq!(beginning_of(&cause_of(None)), None);
    }
}
