//! Validated names of kinds, queues, jobs and workflows.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Longest name in bytes: fits an index entry, a header and a line on a screen.
pub const NAME_MAX_BYTES: usize = 128;

/// A name: 1 to 128 bytes of printable text without spaces at its ends. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks and wraps a name; `what` ("kind", "queue", …) is used in the error.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is empty, too long, or has control characters or outer spaces.
    pub fn new(what: &str, text: impl AsRef<str>) -> Result<Self> {
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
        Self::new("name", text).map_err(serde::de::Error::custom)
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
}
