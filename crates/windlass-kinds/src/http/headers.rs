//! The headers of a request: what a payload may set, what Windlass sets, and what is secret.

use std::ffi::OsString;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT},
};
use serde_json::{Map, Value};
use windlass::{Context, TaskId, trace::TRACEPARENT};

/// Headers whose values are shown as `***` and are never sent to another origin.
pub(crate) const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];
/// Headers that frame the message or belong to the connection. The hazard: if two parts of a request disagree
/// on them, an attacker can smuggle a second request.
const RESERVED_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];
/// Most headers of one task, and most bytes of one value: servers refuse more.
const HEADERS_MAX: usize = 64;
const VALUE_MAX_BYTES: usize = 8 << 10;

/// The source of a header's value.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Text(HeaderValue),
    /// The environment variable of this name, read when the task runs.
    Env(String),
}

/// The headers of a request, with the names of those that must not follow a redirect to another origin.
#[derive(Debug, Clone)]
pub(crate) struct Headers {
    pub(crate) map: HeaderMap,
    pub(crate) secrets: Vec<HeaderName>,
}

/// Reads the `headers` field. Errors name the header, never its value.
pub(crate) fn parse(fields: &Map<String, Value>) -> Result<Vec<(HeaderName, Source)>, String> {
    if fields.len() > HEADERS_MAX {
        return Err(format!("headers has {} entries; at most {HEADERS_MAX} are allowed", fields.len()));
    }
    let mut headers: Vec<(HeaderName, Source)> = Vec::with_capacity(fields.len());
    for (text, value) in fields {
        let shown = crate::shown(text);
        let name = HeaderName::from_bytes(text.as_bytes())
            .map_err(|_| format!("headers has {shown:?}, which is not a header name"))?;
        if RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("windlass-") {
            return Err(format!("header {name} is set by windlass; remove it from headers"));
        }
        if headers.iter().any(|(known, _)| *known == name) {
            return Err(format!("header {name} is given twice"));
        }
        headers.push((name, parse_source(&shown, value)?));
    }
    Ok(headers)
}

fn parse_source(shown: &str, value: &Value) -> Result<Source, String> {
    match value {
        Value::String(text) => header_value(text)
            .map(Source::Text)
            .map_err(|reason| format!("the value of header {shown:?} {reason}")),
        Value::Object(object) => match (object.get("env"), object.len()) {
            (Some(Value::String(name)), 1) => Ok(Source::Env(name.clone())),
            _ => Err(format!("the value of header {shown:?} must be text or {{\"env\": \"NAME\"}}")),
        },
        _ => Err(format!("the value of header {shown:?} must be text or {{\"env\": \"NAME\"}}")),
    }
}

fn header_value(text: &str) -> Result<HeaderValue, String> {
    if text.len() > VALUE_MAX_BYTES {
        return Err(format!("is longer than {VALUE_MAX_BYTES} bytes"));
    }
    // Refuses line breaks and other control characters, so that a value cannot add a second header.
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| "has line breaks or control characters".to_owned())
}

/// The `Authorization` header for a user name and password in a URL.
pub(crate) fn basic(userinfo: &str) -> Result<HeaderValue, String> {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let mut credentials = decode_percent(user);
    credentials.push(b':');
    credentials.extend(decode_percent(password));
    header_value(&format!("Basic {}", BASE64_STANDARD.encode(credentials)))
}

/// Decodes percent-encoding; invalid sequences stay as they are.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits
            .filter(|two| *first == b'%' && two.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    decoded
}

impl Headers {
    /// All headers of a request, with values from the environment filled in.
    pub(crate) fn resolve(
        wanted: &[(HeaderName, Source)],
        allowed_env: &[String],
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let mut headers = Self { map: HeaderMap::new(), secrets: Vec::new() };
        for (name, source) in wanted {
            let mut value = match source {
                Source::Text(value) => value.clone(),
                Source::Env(variable) => {
                    headers.secrets.push(name.clone());
                    read_env(name, variable, allowed_env, &env)?
                }
            };
            if SECRET_HEADERS.contains(&name.as_str()) {
                headers.secrets.push(name.clone());
            }
            value.set_sensitive(headers.secrets.contains(name));
            headers.map.insert(name, value);
        }
        Ok(headers)
    }

    /// Adds the credentials of the URL.
    pub(crate) fn authorize(&mut self, mut credentials: HeaderValue) {
        credentials.set_sensitive(true);
        self.map.insert(AUTHORIZATION, credentials);
        self.secrets.push(AUTHORIZATION);
    }

    /// Adds the headers about Windlass and the task, and defaults for those that the payload does not set.
    pub(crate) fn stamp(&mut self, context: &Context, is_json: bool) -> Result<(), String> {
        self.set_default(USER_AGENT, concat!("windlass/", env!("CARGO_PKG_VERSION")));
        self.set_default(ACCEPT, "*/*");
        if is_json {
            self.set_default(CONTENT_TYPE, "application/json");
        }
        // A trace header of the payload wins.
        if let Some(trace) = context.trace().filter(|_| !self.map.contains_key(TRACEPARENT)) {
            self.set(TRACEPARENT, &trace.to_string())?;
        }
        // A request for a broker's message belongs to no task: it must not get the task headers, which would
        // be the same for every message.
        if context.id() == TaskId::from_raw(0) {
            return Ok(());
        }
        let id = context.id().to_string();
        // The same in every attempt, so that the target can tell a repeated request from a new one.
        if !self.map.contains_key("idempotency-key") {
            self.set("idempotency-key", &id)?;
        }
        self.set("windlass-task", &id)?;
        self.set("windlass-attempt", &context.attempt().to_string())?;
        if let Some(job) = &context.task().job {
            self.set("windlass-job", job.as_str())?;
        }
        if let Some(workflow) = &context.task().workflow {
            self.set("windlass-workflow", workflow.as_str())?;
        }
        Ok(())
    }

    fn set(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        let value = header_value(value).map_err(|reason| format!("the value of header {name} {reason}"))?;
        self.map.insert(HeaderName::from_static(name), value);
        Ok(())
    }

    fn set_default(&mut self, name: HeaderName, value: &'static str) {
        self.map.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn read_env(
    name: &HeaderName,
    variable: &str,
    allowed: &[String],
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<HeaderValue, String> {
    let shown = crate::shown(variable);
    if !allowed.iter().any(|known| known == variable) {
        return Err(format!(
            "header {name} wants environment variable {shown:?}, which the worker's allow-list of header variables does not name"
        ));
    }
    let value = env(variable).ok_or_else(|| {
        format!("header {name} wants environment variable {shown:?}, which the worker does not have")
    })?;
    value.to_str().ok_or(()).and_then(|text| header_value(text).map_err(drop)).map_err(|()| {
        format!("environment variable {shown:?} for header {name} has line breaks, control characters, or is too long")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(headers: &Value) -> Result<Vec<(HeaderName, Source)>, String> {
        parse(headers.as_object().unwrap())
    }

    #[test]
    fn a_payload_cannot_set_framing_or_windlass_headers() {
        for (headers, named) in [
            (json!({"Host": "a"}), "host"),
            (json!({"content-length": "5"}), "content-length"),
            (json!({"Transfer-Encoding": "chunked"}), "transfer-encoding"),
            (json!({"Connection": "upgrade"}), "connection"),
            (json!({"Windlass-Task": "x"}), "windlass-task"),
            (json!({"windlass-anything": "x"}), "windlass-anything"),
            (json!({"x-a": "secret\r\nhost: evil"}), "x-a"),
            (json!({"x-a": "secret\u{0}"}), "x-a"),
            (json!({"x-a": "secret\n"}), "x-a"),
            (json!({"x a": "secret"}), "x a"),
            (json!({"x\r\ny": "secret"}), "not a header name"),
            (json!({"x-a": "1", "X-A": "2"}), "x-a"),
            (json!({"x-a": 1}), "x-a"),
            (json!({"x-a": {"env": "A", "more": 1}}), "x-a"),
            (json!({"x-a": {"var": "secret"}}), "x-a"),
            (json!({"x-a": "s".repeat(9000)}), "x-a"),
        ] {
            let error = read(&headers).unwrap_err();
            assert!(error.contains(named) && !error.contains("secret"), "{error}");
        }
        let many: Map<_, _> = (0..65).map(|n| (format!("x-{n}"), json!("v"))).collect();
        assert!(read(&many.into()).unwrap_err().contains("at most 64"));
    }

    #[test]
    fn environment_values_come_only_from_the_allow_list() {
        let wanted = read(&json!({"x-token": {"env": "TOKEN"}})).unwrap();
        let env = |name: &str| (name == "TOKEN").then(|| OsString::from("hush"));
        let allowed = ["TOKEN".to_owned()];

        let headers = Headers::resolve(&wanted, &allowed, env).unwrap();
        assert_eq!(headers.map["x-token"], "hush");
        assert!(headers.map["x-token"].is_sensitive());
        assert_eq!(headers.secrets, ["x-token"]);

        let refused = Headers::resolve(&wanted, &["OTHER".to_owned()], env).unwrap_err();
        assert!(refused.contains("\"TOKEN\"") && refused.contains("allow-list"), "{refused}");
        let missing = Headers::resolve(&wanted, &allowed, |_| None).unwrap_err();
        assert!(missing.contains("does not have"), "{missing}");
        let broken = Headers::resolve(&wanted, &allowed, |_| Some("hush\nhost: x".into())).unwrap_err();
        assert!(broken.contains("line breaks") && !broken.contains("hush"), "{broken}");
    }

    #[test]
    fn userinfo_becomes_basic_credentials() {
        let decoded = |userinfo: &str| {
            let value = basic(userinfo).unwrap();
            let encoded = value.to_str().unwrap().strip_prefix("Basic ").unwrap().to_owned();
            String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
        };
        assert_eq!(decoded("me:pass:word"), "me:pass:word");
        assert_eq!(decoded("me"), "me:");
        assert_eq!(decoded("a%40b:100%25%zz%"), "a@b:100%%zz%");
    }
}
