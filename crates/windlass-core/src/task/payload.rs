//! Payloads and outputs of tasks: bytes with an encoding.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};

/// Deepest nesting of a JSON payload. Parsers of other languages have limits near it, and deeper nesting
/// could overflow a stack.
pub const JSON_MAX_DEPTH: usize = 128;

/// How to read the bytes of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON, checked when it was enqueued.
    Json,
    /// Any bytes; shown as size and digest only.
    Bytes,
}

impl Encoding {
    /// The number that stores keep.
    pub fn code(self) -> i64 {
        match self {
            Self::Json => 0,
            Self::Bytes => 1,
        }
    }

    /// The encoding of a stored number.
    pub fn from_code(code: i64) -> Option<Self> {
        match code {
            0 => Some(Self::Json),
            1 => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// Bytes with an encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    encoding: Encoding,
    bytes: Vec<u8>,
}

impl Payload {
    /// Bytes of any kind.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { encoding: Encoding::Bytes, bytes: bytes.into() }
    }

    /// The JSON form of a value.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the value has no JSON form.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| Error::invalid(format!("payload has no JSON form: {error}")))?;
        Ok(Self { encoding: Encoding::Json, bytes })
    }

    /// Text that the caller says is JSON; checked without building a value and without recursion.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not JSON, not UTF-8, or nested deeper than [`JSON_MAX_DEPTH`].
    pub fn json_text(text: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = text.into();
        check_depth(&bytes)?;
        serde_json::from_slice::<serde::de::IgnoredAny>(&bytes)
            .map_err(|error| Error::invalid(format!("payload is not valid JSON: {error}")))?;
        if std::str::from_utf8(&bytes).is_err() {
            return Err(Error::invalid("payload is not valid UTF-8"));
        }
        Ok(Self { encoding: Encoding::Json, bytes })
    }

    /// A payload from a store; not checked again.
    pub fn from_stored(encoding: Encoding, bytes: Vec<u8>) -> Self {
        Self { encoding, bytes }
    }

    /// How to read it.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The bytes themselves.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes themselves, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Reads the JSON as a typed value.
    ///
    /// # Errors
    /// The reason as text. It does not quote the value that did not fit, because a payload may contain a
    /// secret.
    pub fn decode<T: DeserializeOwned>(&self) -> std::result::Result<T, String> {
        match self.encoding {
            Encoding::Json => {
                serde_json::from_slice(&self.bytes).map_err(|error| without_value(&error.to_string()))
            }
            Encoding::Bytes => Err("payload is raw bytes, not JSON".to_owned()),
        }
    }
}

/// serde quotes the value that did not fit (`invalid type: string "…", expected u8`); this keeps only its
/// type.
fn without_value(message: &str) -> String {
    let quotes_a_value = ["invalid type: ", "invalid value: ", "unknown variant "]
        .iter()
        .any(|start| message.starts_with(start));
    match (quotes_a_value, message.find(['"', '`']), message.rfind(", expected ")) {
        (true, Some(value), Some(expected)) if value < expected => {
            let (start, end) = message.split_at(expected);
            format!("{}{end}", start.get(..value).unwrap_or_default().trim_end())
        }
        _ => message.to_owned(),
    }
}

/// Counts brackets outside of strings: a hostile payload costs one scan and no stack.
fn check_depth(bytes: &[u8]) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > JSON_MAX_DEPTH {
                    return Err(Error::invalid(format!(
                        "payload is nested deeper than {JSON_MAX_DEPTH} levels"
                    )));
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    #[test]
    fn deep_nesting_is_refused_without_a_stack_overflow() {
        let deep = "[".repeat(100_000);
        let error = Payload::json_text(deep).unwrap_err();
        assert!(error.to_string().contains("128 levels"), "{error}");
    }

    #[test]
    fn a_value_that_does_not_fit_is_not_quoted() {
        let reason = |text: &str| Payload::json_text(text).unwrap().decode::<Vec<u8>>().unwrap_err();
        assert_eq!(
            reason(r#"["s3cret, expected x"]"#),
            "invalid type: string, expected u8 at line 1 column 21"
        );
        assert_eq!(reason("[4711]"), "invalid value: integer, expected u8 at line 1 column 5");
        assert_eq!(reason("7"), "invalid type: integer, expected a sequence at line 1 column 1");
        let flag = Payload::json_text(r#""s3cret""#).unwrap().decode::<State>().unwrap_err();
        assert!(flag.starts_with("unknown variant, expected one of"), "{flag}");
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = format!("{{\"a\":\"{}\\\"\"}}", "[".repeat(500));
        assert!(Payload::json_text(text).is_ok());
    }

    #[test]
    fn escaped_nul_is_stored_whole_and_broken_text_is_refused() {
        let payload = Payload::json_text(r#""a\u0000b""#).unwrap();
        assert_eq!(payload.decode::<String>().unwrap(), "a\0b");
        assert!(Payload::json_text(vec![b'"', 0xff, b'"']).is_err());
        assert!(Payload::json_text("").is_err());
        assert!(Payload::json_text("{").is_err());
    }
}
