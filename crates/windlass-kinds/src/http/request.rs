//! The payload of an `http` task.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value, value::RawValue};
use windlass::{Payload, task::Encoding};

use super::{
    headers::{self, Source},
    url::Url,
};

/// The fields that a payload may have.
const FIELDS: [&str; 8] =
    ["url", "method", "headers", "body", "json", "timeout_ms", "max_redirects", "max_body_bytes"];
/// Defaults and limits of the numbers. No useful request takes a day.
const TIMEOUT_DEFAULT_MS: u64 = 30_000;
const TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1000;
const REDIRECTS_DEFAULT: u64 = 5;
const REDIRECTS_MAX: u64 = 20;
const BODY_DEFAULT_BYTES: u64 = 64 << 10;
const BODY_MAX_BYTES: u64 = 16 << 20;

/// A checked payload.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) url: Url,
    /// The credentials from the user name and password in the URL.
    pub(crate) credentials: Option<HeaderValue>,
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, Source)>,
    pub(crate) body: Bytes,
    pub(crate) is_json: bool,
    pub(crate) timeout: Duration,
    pub(crate) max_redirects: u32,
    pub(crate) max_body_bytes: usize,
}

/// Checks a payload of kind `http` before it is enqueued: fields, URL, method, headers and numbers.
///
/// The target's addresses are checked only when the task runs.
///
/// # Errors
/// What is wrong, with the name of the field and without any value.
pub fn check_http_payload(payload: &Value) -> Result<(), String> {
    Request::parse(payload).map(drop)
}

impl Request {
    /// Reads the payload of a claimed task.
    pub(crate) fn from_payload(payload: &Payload) -> Result<Self, String> {
        let mut request = Self::parse(&payload.decode()?)?;
        if request.is_json && payload.encoding() == Encoding::Json {
            // Keep the text as given: a conversion through 64-bit numbers would change large ones.
            let fields: BTreeMap<String, &RawValue> =
                serde_json::from_slice(payload.as_bytes()).map_err(|error| error.to_string())?;
            if let Some(json) = fields.get("json") {
                request.body = Bytes::copy_from_slice(json.get().as_bytes());
            }
        }
        Ok(request)
    }

    fn parse(payload: &Value) -> Result<Self, String> {
        let fields =
            payload.as_object().ok_or("the payload must be an object such as {\"url\": \"https://…\"}")?;
        if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            return Err(format!("unknown field {:?}; known are {}", crate::shown(field), FIELDS.join(", ")));
        }
        let url = text(fields, "url")?.ok_or("url is missing")?;
        let parsed = Url::parse(url).map_err(|reason| format!("url {reason}"))?;
        let headers = match fields.get("headers") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(headers)) => headers::parse(headers)?,
            Some(_) => return Err("headers must be an object of names and values".to_owned()),
        };
        let credentials = parsed
            .userinfo
            .map(headers::basic)
            .transpose()
            .map_err(|reason| format!("the user name and password in url: {reason}"))?;
        if credentials.is_some() && headers.iter().any(|(name, _)| name == http::header::AUTHORIZATION) {
            return Err("give a user name in url or an authorization header, not both".to_owned());
        }
        let (body, is_json) = body(fields)?;
        Ok(Self {
            url: parsed.url,
            credentials,
            method: method(fields)?,
            headers,
            body,
            is_json,
            timeout: Duration::from_millis(number(
                fields,
                "timeout_ms",
                TIMEOUT_DEFAULT_MS,
                1..=TIMEOUT_MAX_MS,
            )?),
            max_redirects: number(fields, "max_redirects", REDIRECTS_DEFAULT, 0..=REDIRECTS_MAX)? as u32,
            max_body_bytes: number(fields, "max_body_bytes", BODY_DEFAULT_BYTES, 0..=BODY_MAX_BYTES)?
                as usize,
        })
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name} must be text")),
    }
}

fn number(
    fields: &Map<String, Value>,
    name: &str,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_u64().filter(|number| range.contains(number)).ok_or_else(|| {
            format!("{name} must be a whole number from {} to {}", range.start(), range.end())
        }),
    }
}

fn method(fields: &Map<String, Value>) -> Result<Method, String> {
    let text = text(fields, "method")?.unwrap_or("GET").to_ascii_uppercase();
    match Method::from_bytes(text.as_bytes()) {
        // A CONNECT tunnel would bypass the checks, and TRACE shows the headers to the server that answers.
        Ok(Method::CONNECT | Method::TRACE) => Err("method must not be CONNECT or TRACE".to_owned()),
        Ok(method) if text.len() <= 32 => Ok(method),
        _ => Err("method must be a word such as GET or POST".to_owned()),
    }
}

fn body(fields: &Map<String, Value>) -> Result<(Bytes, bool), String> {
    match (text(fields, "body")?, fields.get("json")) {
        (Some(_), Some(_)) => Err("give body or json, not both".to_owned()),
        (Some(text), None) => Ok((Bytes::copy_from_slice(text.as_bytes()), false)),
        (None, Some(json)) => Ok((json.to_string().into(), true)),
        (None, None) => Ok((Bytes::new(), false)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_url_is_enough() {
        let request = Request::parse(&json!({"url": "https://example.com"})).unwrap();
        assert_eq!(request.method, Method::GET);
        assert_eq!(request.timeout, Duration::from_secs(30));
        assert_eq!((request.max_redirects, request.max_body_bytes), (5, 65536));
        assert!(request.headers.is_empty() && request.body.is_empty() && !request.is_json);
    }

    #[test]
    fn wrong_fields_are_refused_without_their_values() {
        let url = "https://example.com";
        for (payload, named) in [
            (json!("secret"), "must be an object"),
            (json!([]), "must be an object"),
            (json!({}), "url is missing"),
            (json!({"url": 5}), "url must be text"),
            (json!({"url": "secret"}), "url must begin with http"),
            (json!({"url": "http://me:secret@exa mple/"}), "url has spaces"),
            (json!({"url": "http://me:secret@host:port/"}), "url has a port"),
            (json!({"url": url, "timeout": 5}), "unknown field \"timeout\""),
            (json!({"url": url, "method": "GE T secret"}), "method must be"),
            (json!({"url": url, "method": "connect"}), "method must not be"),
            (json!({"url": url, "headers": ["secret"]}), "headers must be an object"),
            (json!({"url": url, "body": {"secret": 1}}), "body must be text"),
            (json!({"url": url, "body": "secret", "json": 1}), "body or json, not both"),
            (json!({"url": url, "timeout_ms": 0}), "timeout_ms must be a whole number from 1"),
            (json!({"url": url, "timeout_ms": "secret"}), "timeout_ms"),
            (json!({"url": url, "max_redirects": 21}), "max_redirects"),
            (json!({"url": url, "max_body_bytes": -1}), "max_body_bytes"),
            (json!({"url": "http://u:secret@h/", "headers": {"Authorization": "secret"}}), "not both"),
        ] {
            let error = check_http_payload(&payload).unwrap_err();
            assert!(error.contains(named), "{payload}: {error}");
            assert!(!error.contains("secret") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn json_is_sent_as_it_was_written() {
        let text = r#"{"url":"http://h/","json":{"b":123456789012345678901234567890, "a":1.10}}"#;
        let request = Request::from_payload(&Payload::json_text(text).unwrap()).unwrap();
        assert_eq!(request.body, r#"{"b":123456789012345678901234567890, "a":1.10}"#);
        let null = Payload::json_text(r#"{"url":"http://h/","json":null}"#).unwrap();
        assert_eq!(Request::from_payload(&null).unwrap().body, "null");
    }

    #[test]
    fn raw_bytes_are_not_a_request() {
        assert!(Request::from_payload(&Payload::bytes("{}")).unwrap_err().contains("raw bytes"));
    }
}
