//! Reading JSON from outside: one line of error that names the field and the nearest known one.

use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::api::ErrorDetail;

/// Longest error text that is made of foreign input.
const MESSAGE_MAX_CHARS: usize = 300;
/// From this similarity on (0 to 1, beginnings count more) an unknown name is taken for a misspelt known one.
const ALIKE_MIN: f64 = 0.8;

/// Reads a value; the text must contain nothing else.
///
/// Nesting costs no stack: typed fields are no deeper than their types. A payload is skipped without
/// recursion, and checked when its task is built.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ErrorDetail> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ErrorDetail::invalid(format!("the body is not valid UTF-8 (at byte {})", error.valid_up_to()))
    })?;
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        unknown_field(&message).unwrap_or_else(|| {
            let what = if error.is_data() { "the body does not fit" } else { "the body is not valid JSON" };
            ErrorDetail::invalid(clipped(&format!("{what}: {}", without_rust(&message))))
        })
    })
}

/// serde's message in plain words: a caller does not know the Rust types of this program.
fn without_rust(message: &str) -> String {
    // The caller's text comes before the last of these.
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let (type_name, rest) = expected.split_at(expected.find(" at line ").unwrap_or(expected.len()));
    let words = match type_name {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => format!("a whole number from 0 to {}", u64::MAX),
        "i8" => format!("a whole number from {} to {}", i8::MIN, i8::MAX),
        "i16" => format!("a whole number from {} to {}", i16::MIN, i16::MAX),
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        "i64" | "isize" => format!("a whole number from {} to {}", i64::MIN, i64::MAX),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "an object".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    };
    format!("{found}, expected {words}{rest}")
}

/// Turns serde's "unknown field" into an error with the nearest known field as its hint.
pub(crate) fn unknown_field(message: &str) -> Option<ErrorDetail> {
    let (_, rest) = message.split_once("unknown field `")?;
    // The field's name comes from the caller and may contain this separator: the last one is serde's.
    let (field, expected) =
        rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are no fields"))?;
    let known: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
    let shown: String = field.chars().take(40).collect();
    let error = ErrorDetail::invalid(format!("unknown field {shown:?}"));
    Some(match nearest(&shown, &known) {
        Some(near) => error.hint(format!("did you mean {near:?}?")),
        None if known.is_empty() => error.hint("no fields are expected here"),
        None => error.hint(format!("known fields: {}", known.join(", "))),
    })
}

/// The known name that is most similar to a misspelt one.
fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), *name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .map(|(_, name)| name)
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= MESSAGE_MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MESSAGE_MAX_CHARS).chain(['…']).collect()
}

/// Whether a body is a batch, and how many tasks it has; counted without building them.
#[derive(Deserialize)]
#[serde(expecting = "an object: a task, or several in `tasks`")]
pub(crate) struct BatchShape {
    /// Entries of `tasks`, if there is such a field.
    #[serde(default, rename = "tasks")]
    pub(crate) len: Option<Count>,
}

/// The number of entries in an array.
pub(crate) struct Count(pub(crate) usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of tasks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut tasks: A) -> Result<Count, A::Error> {
                let mut n = 0;
                while tasks.next_element::<IgnoredAny>()?.is_some() {
                    n += 1;
                }
                Ok(Count(n))
            }
        }
        deserializer.deserialize_seq(Counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{BulkRequest, EnqueueRequest};

    fn refused<T: DeserializeOwned>(text: impl AsRef<[u8]>) -> ErrorDetail {
        parse::<T>(text.as_ref()).err().unwrap()
    }

    #[test]
    fn a_mistyped_field_is_refused_with_the_nearest_one() {
        for (text, near) in [
            (r#"{"kind":"a","quee":"b"}"#, "queue"),
            (r#"{"kind":"a","max_atempts":1}"#, "max_attempts"),
            (r#"{"kind":"a","payload_bas64":""}"#, "payload_base64"),
            (r#"{"kind":"a","retry":{"base":1}}"#, "base_ms"),
        ] {
            let error = refused::<EnqueueRequest>(text);
            assert_eq!(error.hint, Some(format!("did you mean {near:?}?")), "{text}: {error}");
        }
    }

    #[test]
    fn an_unlike_field_is_refused_with_the_known_fields() {
        let error = refused::<BulkRequest>(r#"{"colour of the sea":1}"#);
        assert!(error.hint.unwrap().contains("dry_run, over_ms"));
    }

    #[test]
    fn a_field_that_imitates_an_error_message_is_quoted_whole() {
        let error = refused::<BulkRequest>(r#"{"x`, expected `y":1}"#);
        assert_eq!(error.message, r#"unknown field "x`, expected `y""#);
    }

    #[test]
    fn broken_text_says_where() {
        assert!(refused::<EnqueueRequest>("{").message.contains("not valid JSON"));
        assert!(refused::<EnqueueRequest>(r#"{"kind":5}"#).message.contains("does not fit"));
        assert!(refused::<EnqueueRequest>(b"{\"kind\":\"\xff\"}").message.contains("UTF-8 (at byte 9)"));
        let long = format!(r#"{{"kind":"a","priority":"{}"}}"#, "x".repeat(5_000));
        assert!(refused::<EnqueueRequest>(long).message.chars().count() < 320);
    }

    #[test]
    fn errors_do_not_name_rust_types() {
        for (text, words) in [
            (
                r#"{"kind":"a","max_attempts":"x"}"#,
                "string \"x\", expected a whole number from 0 to 4294967295 at line 1",
            ),
            (r#"{"kind":"a","max_attempts":-1}"#, "expected a whole number from 0 to 4294967295"),
            (r#"{"kind":"a","priority":3000000000}"#, "expected a whole number from -"),
            (r#"{"kind":"a","delay_ms":1.5}"#, "expected a whole number from 0 to 18446744073709551615"),
            (r#"{"kind":"a","retry":5}"#, "expected an object"),
            (r#"{"kind":5}"#, "expected a string"),
        ] {
            let message = refused::<EnqueueRequest>(text).message;
            assert!(message.contains(words), "{text}: {message}");
        }
        let words = "\", expected a whole number from 0 to 4294967295 at line 1 column";
        let tricky =
            refused::<EnqueueRequest>(r#"{"kind":"a","max_attempts":", expected u32 at line 9"}"#).message;
        assert!(tricky.contains(words), "{tricky}");
    }

    #[test]
    fn a_hundred_thousand_levels_cost_no_stack() {
        let deep = format!(r#"{{"kind":"a","payload":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse::<EnqueueRequest>(deep.as_bytes()).is_ok());
        let typed = format!(r#"{{"kind":{}"#, "[".repeat(100_000));
        assert!(refused::<EnqueueRequest>(typed).message.contains("does not fit"));
        let shape: BatchShape =
            parse(deep.replace("payload", "tasks").replacen('1', "", 1).as_bytes()).unwrap();
        assert_eq!(shape.len.unwrap().0, 1);
    }
}
