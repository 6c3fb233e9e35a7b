//! Hides secrets of an `http` payload from people (promise S8).

use serde_json::Value;

use super::{headers::SECRET_HEADERS, url::Url};

/// Replaces a secret.
const HIDDEN: &str = "***";

/// The payload with `***` for the values of `authorization`, `cookie` and `x-api-key` in any case, and for
/// the user name and password in `url`. Works on invalid payloads too.
#[must_use]
pub fn redact_http_payload(mut payload: Value) -> Value {
    let Some(fields) = payload.as_object_mut() else { return payload };
    for (field, value) in fields {
        match (field.to_ascii_lowercase().as_str(), value) {
            ("headers", Value::Object(headers)) => {
                for (name, value) in headers {
                    if SECRET_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str()) {
                        *value = HIDDEN.into();
                    }
                }
            }
            // An invalid shape that never runs, but it may contain a secret.
            ("headers", value) if !value.is_null() => *value = HIDDEN.into(),
            ("url", Value::String(url)) => *url = redact_url(url),
            _ => {}
        }
    }
    payload
}

/// The URL without its user name and password. In a text that is not a URL, everything up to the last `@`
/// might be a password.
fn redact_url(text: &str) -> String {
    let userinfo_end = match Url::parse(text) {
        Ok(parsed) => match parsed.userinfo {
            Some(userinfo) => text.find("://").map(|at| at + "://".len() + userinfo.len()),
            None => None,
        },
        Err(_) => text.rfind('@'),
    };
    match userinfo_end.and_then(|end| text.get(end..)) {
        Some(rest) => {
            let scheme = ["https://", "http://"].iter().find(|scheme| text.starts_with(*scheme));
            format!("{}{HIDDEN}{rest}", scheme.copied().unwrap_or_default())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_in_any_case_and_shape() {
        let shown = redact_http_payload(json!({
            "url": "https://me:secret@example.com/a@b?c=@d",
            "headers": {
                "Authorization": "Bearer secret",
                "COOKIE": "secret",
                "x-Api-Key": {"env": "secret"},
                "proxy-authorization": "secret",
                "accept": "text/html",
            },
            "json": {"authorization": "kept: it is the body"},
        }));
        assert!(!shown.to_string().contains("secret"), "{shown}");
        assert_eq!(shown["url"], "https://***@example.com/a@b?c=@d");
        assert_eq!(shown["headers"]["Authorization"], "***");
        assert_eq!(shown["headers"]["accept"], "text/html");
        assert_eq!(shown["json"]["authorization"], "kept: it is the body");
    }

    #[test]
    fn invalid_payloads_show_no_secret_either() {
        for payload in [
            json!({"headers": [["authorization", "secret"]]}),
            json!({"headers": "authorization: secret"}),
            json!({"Headers": {" authorization": "secret"}}),
            json!({"url": "http://me:sec/secret@host/"}),
            json!({"url": "HTTPS://me:secret@host/"}),
            json!({"url": "me:secret@host"}),
            json!({"url": "http://me: secret@host"}),
            json!({"url": "ftp://secret@host"}),
        ] {
            let shown = redact_http_payload(payload).to_string();
            assert!(!shown.contains("secret") && shown.contains("***"), "{shown}");
        }
        for payload in [json!(null), json!(["a@b"]), json!({"url": "https://example.com/@me"})] {
            assert_eq!(redact_http_payload(payload.clone()), payload);
        }
    }
}
