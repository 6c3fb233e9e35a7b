//! Follows a redirect: to which URL, with which method, and without which headers.

use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, LOCATION},
};

use super::{headers::Headers, url::Url};

/// One request of an exchange; a redirect turns it into the next.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
}

impl Hop {
    /// The request for a redirect. The error says why the redirect cannot be followed.
    pub(crate) fn follow(mut self, status: StatusCode, answer: &HeaderMap) -> Result<Self, String> {
        let location = answer.get(LOCATION).ok_or("without saying where to")?;
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| "to something that is no URL")?;
        let absolute = resolve(&self.url, location);
        // A user name in a Location is dropped: the payload did not ask to send one.
        let next = Url::parse(&absolute).map_err(|reason| format!("to a URL that {reason}"))?.url;
        if becomes_get(status, &self.method) {
            self.method = Method::GET;
            self.body = Bytes::new();
            for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
                self.headers.map.remove(name);
            }
        }
        if !next.is_same_origin(&self.url) {
            // Secrets belong to the first origin; a later redirect back to it does not restore them.
            for name in self.headers.secrets.drain(..) {
                self.headers.map.remove(name);
            }
        }
        self.url = next;
        Ok(self)
    }
}

/// 303 asks for a GET; 301 and 302 do so after a POST by custom; 307 and 308 keep the method.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::GET && method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

/// Resolves a relative reference (RFC 3986, section 5.2). The result is not checked yet.
fn resolve(base: &Url, reference: &str) -> String {
    let reference = reference.trim().split('#').next().unwrap_or_default();
    let scheme = if base.secure { "https" } else { "http" };
    if has_scheme(reference) {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let merged = match path {
        "" => base.path.path().to_owned(),
        path if path.starts_with('/') => without_dots(path),
        path => {
            let folder = base.path.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            without_dots(&format!("{folder}/{path}"))
        }
    };
    let query = if reference.is_empty() { base.path.query() } else { query };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{}{merged}{query}", base.authority())
}

fn has_scheme(reference: &str) -> bool {
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// An absolute path with its `.` and `..` segments applied.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let is_folder = path.ends_with("/.") || path.ends_with("/..");
    format!("/{}{}", kept.join("/"), if is_folder && !kept.is_empty() { "/" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method) -> Hop {
        let mut map = HeaderMap::new();
        for name in ["authorization", "cookie", "x-api-key", "x-from-env", "x-plain", "content-type"] {
            map.insert(name, "v".parse().unwrap());
        }
        let secrets = ["authorization", "cookie", "x-api-key", "x-from-env"].map(|n| n.parse().unwrap());
        Hop {
            url: Url::parse("https://example.com/a/b?c=d").unwrap().url,
            method,
            headers: Headers { map, secrets: secrets.into() },
            body: Bytes::from_static(b"body"),
        }
    }

    fn follow(status: u16, method: Method, location: &str) -> Result<Hop, String> {
        let mut answer = HeaderMap::new();
        answer.insert(LOCATION, location.parse().unwrap());
        hop(method).follow(StatusCode::from_u16(status).unwrap(), &answer)
    }

    #[test]
    fn relative_locations_are_resolved_like_the_standard() {
        for (location, expected) in [
            ("http://other.example/x", "http://other.example/x"),
            ("HTTPS://other.example", "https://other.example/"),
            ("//other.example/x?y", "https://other.example/x?y"),
            ("/x", "https://example.com/x"),
            ("x", "https://example.com/a/x"),
            ("x/y?z#f", "https://example.com/a/x/y?z"),
            ("?z", "https://example.com/a/b?z"),
            ("", "https://example.com/a/b?c=d"),
            ("#f", "https://example.com/a/b?c=d"),
            ("../x", "https://example.com/x"),
            ("../../../x", "https://example.com/x"),
            ("./", "https://example.com/a/"),
            ("/a/../b/./c/..", "https://example.com/b/"),
            ("..", "https://example.com/"),
            ("x:y/z", ""),
            ("./x:y", "https://example.com/a/x:y"),
            ("javascript:alert(1)", ""),
            ("file:///etc/passwd", ""),
            ("http://", ""),
            ("http://a b/", ""),
        ] {
            match follow(301, Method::GET, location) {
                Ok(next) => assert_eq!(next.url.to_uri().unwrap(), expected, "{location}"),
                Err(reason) => assert_eq!("", expected, "{location}: {reason}"),
            }
        }
        assert!(hop(Method::GET).follow(StatusCode::FOUND, &HeaderMap::new()).is_err());
    }

    #[test]
    fn the_method_and_the_body_follow_the_status() {
        use Method as M;
        for (status, before, after) in [
            (301, M::GET, M::GET),
            (301, M::POST, M::GET),
            (301, M::PUT, M::PUT),
            (302, M::POST, M::GET),
            (302, M::HEAD, M::HEAD),
            (303, M::POST, M::GET),
            (303, M::PUT, M::GET),
            (303, M::HEAD, M::HEAD),
            (307, M::POST, M::POST),
            (308, M::DELETE, M::DELETE),
        ] {
            let next = follow(status, before.clone(), "/x").unwrap();
            assert_eq!(next.method, after, "{status} {before}");
            let keeps_body = before == after;
            assert_eq!(next.body.is_empty(), !keeps_body, "{status} {before}");
            assert_eq!(next.headers.map.contains_key("content-type"), keeps_body, "{status} {before}");
        }
    }

    #[test]
    fn secrets_are_not_sent_to_another_origin() {
        let same = follow(307, Method::GET, "https://example.com:443/x").unwrap();
        assert_eq!(same.headers.map["authorization"], "v");
        for elsewhere in ["https://evil.example/", "http://example.com/", "https://example.com:444/"] {
            let next = follow(307, Method::GET, elsewhere).unwrap();
            for secret in ["authorization", "cookie", "x-api-key", "x-from-env"] {
                assert!(!next.headers.map.contains_key(secret), "{elsewhere} got {secret}");
            }
            assert_eq!(next.headers.map["x-plain"], "v");
        }
    }
}
