//! Validated names of kinds, queues, jobs and workflows.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    text,
};

/// Longest name in bytes: fits an index entry, a header and a line on a screen.
pub const NAME_MAX_BYTES: usize = 128;

/// A name: 1 to 128 bytes of visible text without spaces at its ends. Cheap to clone.
///
/// Names from a store, a server or a file (`stored`, `Deserialize`) may be older than the rule against
/// invisible characters. They are still read, so that their tasks run on, but no new task or setting may use
/// such a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and wraps a name; `what` ("kind", "queue", …) is used in the error.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is empty, too long, or has outer spaces or characters that are
    /// [unsafe](text::is_unsafe).
    pub fn new(what: &str, text: impl AsRef<str>) -> Result<Self> {
        let name = Self::stored(what, text)?;
        name.check(what)?;
        Ok(name)
    }

    /// Wraps a name that is already in use.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no version ever accepted it: it is empty, too long, or has control characters or
    /// outer spaces.
    pub fn stored(what: &str, text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        let shown: String = text.chars().take(40).collect();
        if text.is_empty() {
            return Err(Error::invalid(format!("{what} must not be empty")));
        }
        if text.len() > NAME_MAX_BYTES {
            return Err(Error::invalid(format!(
                "{what} {shown:?}… is {} bytes long; at most {NAME_MAX_BYTES} are allowed",
                text.len()
            )));
        }
        if text.chars().any(char::is_control) || text.trim() != text {
            return Err(Error::invalid(format!(
                "{what} {shown:?} has control characters or spaces at its ends"
            )));
        }
        Ok(Self(text.into()))
    }

    /// Checks whether a new task or setting may use this name.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it has characters that are [unsafe](text::is_unsafe).
    pub fn check(&self, what: &str) -> Result<()> {
        if !text::has_unsafe(&self.0) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{what} {:?} has characters that are invisible or reorder text",
            text::shown(&self.0)
        )))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::stored("name", text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_break_a_line_or_an_index_are_refused() {
        for text in ["", " a", "a\n", "a\0b", &"x".repeat(129)] {
            assert!(Name::new("queue", text).is_err(), "{text:?}");
        }
        assert!(Name::new("queue", "täglich/site-7 eu").is_ok());
    }

    #[test]
    fn a_new_name_has_no_unsafe_character() {
        for letter in '\0'..=char::MAX {
            let name = Name::new("queue", format!("a{letter}b"));
            assert_eq!(name.is_err(), text::is_unsafe(letter), "{letter:?}");
            let Err(error) = name else { continue };
            assert!(!text::has_unsafe(&error.to_string()), "{error:?}");
        }
    }

    #[test]
    fn a_stored_unsafe_name_is_read_but_refused_for_new_tasks() {
        let old = Name::stored("queue", "a\u{202e}b").unwrap();
        assert_eq!(old.as_str(), "a\u{202e}b");
        assert!(old.check("queue").is_err());
        assert_eq!(serde_json::from_str::<Name>("\"a\u{202e}b\"").unwrap(), old);
        assert!(Name::stored("queue", "a\nb").is_err());
    }
}
