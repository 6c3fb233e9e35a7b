//! The output of a successful request.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};

/// The headers that describe the body and its new location. Never cookies.
const KEPT_HEADERS: [header::HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LOCATION,
];
/// Longest header value that is kept; a longer one is left out, because a cut value may mean something else.
const HEADER_MAX_BYTES: usize = 2 << 10;

/// The part of a body that was read.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    pub(crate) truncated: bool,
}

/// The output of a task: at most `max_bytes` of JSON, because a store drops a longer one whole.
pub(crate) fn output(status: StatusCode, headers: &HeaderMap, body: &Body, max_bytes: usize) -> Value {
    let mut output = json!({ "status": status.as_u16(), "headers": kept(headers), "truncated": false });
    let frame_bytes = output.to_string().len() + r#","body_base64":"""#.len();
    let room_bytes = max_bytes.saturating_sub(frame_bytes);
    let (field, text, is_cut) = if let Some(text) = text_of(body) {
        let fitting = fit_escaped(text, room_bytes);
        ("body", fitting.to_owned(), fitting.len() < body.bytes.len())
    } else {
        let fitting = body.bytes.get(..room_bytes / 4 * 3).unwrap_or(&body.bytes);
        ("body_base64", BASE64_STANDARD.encode(fitting), fitting.len() < body.bytes.len())
    };
    if let Some(fields) = output.as_object_mut() {
        fields.insert(field.to_owned(), text.into());
        fields.insert("truncated".to_owned(), (body.truncated || is_cut).into());
    }
    output
}

fn kept(headers: &HeaderMap) -> Map<String, Value> {
    KEPT_HEADERS
        .iter()
        .filter_map(|name| {
            let value = headers.get(name)?.to_str().ok()?;
            (value.len() <= HEADER_MAX_BYTES).then(|| (name.to_string(), value.into()))
        })
        .collect()
}

/// The body as text, if it is text. A cut may split the last character, which is then left out.
fn text_of(body: &Body) -> Option<&str> {
    match std::str::from_utf8(&body.bytes) {
        Ok(text) => Some(text),
        Err(error) if body.truncated && error.error_len().is_none() => {
            std::str::from_utf8(body.bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

/// The longest prefix whose JSON form takes at most `room_bytes`.
fn fit_escaped(text: &str, room_bytes: usize) -> &str {
    let mut used_bytes = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        used_bytes += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..'\u{20}' => 6,
            _ => c.len_utf8(),
        };
        (used_bytes > room_bytes).then_some(at)
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: impl Into<Bytes>, truncated: bool, max_bytes: usize) -> Value {
        let body = Body { bytes: bytes.into(), truncated };
        output(StatusCode::OK, &HeaderMap::new(), &body, max_bytes)
    }

    #[test]
    fn text_is_text_and_anything_else_is_base64() {
        let text = of("grüß\0 \"dich\"", false, 1000);
        assert_eq!(text, json!({"status":200,"headers":{},"body":"grüß\0 \"dich\"","truncated":false}));
        let binary = of(vec![0xff, 0x00, 0xfe], false, 1000);
        assert_eq!(binary, json!({"status":200,"headers":{},"body_base64":"/wD+","truncated":false}));
    }

    #[test]
    fn a_cut_through_a_character_leaves_text() {
        let bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(of(bytes.clone(), true, 1000)["body"], "a");
        assert_eq!(of(bytes, false, 1000)["body_base64"], "YcM=");
    }

    #[test]
    fn an_output_is_never_larger_than_a_store_keeps() {
        for body in [vec![b'a'; 5000], vec![0x01; 5000], "\"é".repeat(2000).into_bytes(), vec![0xff; 5000]] {
            let output = of(body, false, 1000);
            let len = output.to_string().len();
            assert!((985..=1000).contains(&len), "{len}");
            assert_eq!(output["truncated"], true);
        }
        assert!(of("x", false, 0).to_string().len() < 100, "only the frame is left");
    }

    #[test]
    fn only_headers_about_the_body_are_kept() {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/plain".parse().unwrap());
        headers.insert("set-cookie", "session=secret".parse().unwrap());
        headers.insert("etag", "x".repeat(5000).parse().unwrap());
        let body = Body { bytes: Bytes::new(), truncated: false };
        let output = output(StatusCode::NO_CONTENT, &headers, &body, 1000);
        assert_eq!(output["headers"], json!({"content-type": "text/plain"}));
    }
}
