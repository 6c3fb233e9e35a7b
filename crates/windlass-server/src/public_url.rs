//! The address at which browsers reach a server, and the prefix of its paths there.
//!
//! A proxy may pass the prefix on or remove it: the server answers both. Every link of a page goes through
//! [`Prefix::link`].

use std::{fmt, net::IpAddr, str::FromStr};

use http::uri::{Scheme, Uri};

/// Beginnings of the server's own paths. A prefix that began with one could not be told from a path.
const OWN_PATHS: [&str; 18] = [
    "access",
    "assets",
    "consumers",
    "dead",
    "healthz",
    "jobs",
    "login",
    "logout",
    "metrics",
    "overview",
    "queues",
    "readyz",
    "schedules",
    "store",
    "tasks",
    "v1",
    "workers",
    "workflows",
];

/// The address at which browsers reach a server, such as `https://ops.example.com/windlass`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    host: String,
    is_https: bool,
    prefix: Prefix,
}

impl PublicUrl {
    /// Scheme, host and port as a browser writes them in an Origin header: `https://ops.example.com`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host, without a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether only browsers of this machine can use it.
    pub fn is_local(&self) -> bool {
        let bare = self.host.trim_matches(['[', ']']);
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        bare == "localhost" || bare.parse().is_ok_and(is_loopback)
    }

    /// Whether browsers use TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// What every path begins with.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.prefix.link("/"))
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    /// Reads it; the error is the rest of a sentence that starts with the name of a setting.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("must be an address such as https://ops.example.com/windlass: {why}");
        if let Some(sign) = text.chars().find(|sign| matches!(sign, '?' | '#' | '@' | '\\')) {
            return Err(wrong(&format!("{text:?} has a {sign:?}")));
        }
        let uri: Uri = text.parse().map_err(|_| wrong(&format!("{text:?} is none")))?;
        let is_https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong(&format!("{text:?} does not begin with https:// or http://"))),
        };
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let is_host =
            |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | ':' | '[' | ']');
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(wrong(&format!("{text:?} has no valid host")));
        }
        let port = match (uri.port_u16(), is_https) {
            (Some(443), true) | (Some(80), false) | (None, _) => String::new(),
            (Some(port), _) => format!(":{port}"),
        };
        let scheme = if is_https { "https" } else { "http" };
        let prefix = Prefix::of(uri.path()).map_err(|why| wrong(&why))?;
        Ok(Self { origin: format!("{scheme}://{host}{port}"), host, is_https, prefix })
    }
}

/// What the path of every request and link begins with, such as `/windlass`; empty without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    fn of(path: &str) -> Result<Self, String> {
        let path = path.trim_end_matches('/');
        for part in path.split('/').skip(1) {
            let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_' | '~');
            if part.is_empty() || part.starts_with('.') || !part.chars().all(is_plain) {
                return Err(format!(
                    "the path {path:?} may have letters, digits and . _ ~ - between slashes"
                ));
            }
        }
        let first = path.split('/').nth(1).unwrap_or_default();
        if OWN_PATHS.contains(&first) {
            return Err(format!("the server itself has paths under /{first}"));
        }
        Ok(Self(path.to_owned()))
    }

    /// It as text, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A path of the server as a browser must ask for it: "/tasks" becomes "/windlass/tasks".
    pub fn link(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The path of a request without the prefix. A path without it stays as it is: a proxy has removed it.
    pub fn strip<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_prefix(self.0.as_str()) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PublicUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_gives_origin_and_prefix() {
        for (text, origin, prefix) in [
            ("https://ops.example.com/windlass", "https://ops.example.com", "/windlass"),
            ("https://OPS.example.com:443/a/b/", "https://ops.example.com", "/a/b"),
            ("http://10.1.2.3:8080", "http://10.1.2.3:8080", ""),
            ("http://localhost:80/", "http://localhost", ""),
            ("https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443", "/x"),
        ] {
            let url = read(text);
            assert_eq!((url.origin(), url.prefix().as_str()), (origin, prefix), "{text}");
        }
        assert_eq!(read("https://a.b/w/").to_string(), "https://a.b/w/");
        assert_eq!(read("https://[::1]/w").host(), "[::1]");
        assert!(read("http://[::1]").is_local() && read("http://localhost:1/a").is_local());
        assert!(!read("http://10.1.2.3").is_local() && !read("https://localhost.example.com").is_local());
    }

    #[test]
    fn an_address_that_is_none_says_why() {
        for (text, why) in [
            ("", "\"\" is none"),
            ("ops.example.com", "does not begin with https:// or http://"),
            ("/windlass", "does not begin with https:// or http://"),
            ("ftp://a.b", "does not begin with https:// or http://"),
            ("https://", "is none"),
            ("https://user@a.b", "has a '@'"),
            ("https://a.b/?x", "has a '?'"),
            ("https://a.b/#x", "has a '#'"),
            ("https://a,b/", "has no valid host"),
            ("https://a.b//c", "between slashes"),
            ("https://a.b/../c", "between slashes"),
            ("https://a.b/c%20d", "between slashes"),
            ("https://a.b/v1", "the server itself has paths under /v1"),
            ("https://a.b/tasks/x", "the server itself has paths under /tasks"),
        ] {
            let error = text.parse::<PublicUrl>().unwrap_err();
            assert!(error.ends_with(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_prefix_is_added_to_links_and_taken_from_paths() {
        let (prefix, none) = (read("https://a.b/windlass").prefix, Prefix::default());
        assert_eq!((prefix.link("/tasks"), none.link("/tasks")), ("/windlass/tasks".into(), "/tasks".into()));
        for (path, stripped) in [
            ("/windlass/v1/tasks", "/v1/tasks"),
            ("/windlass/", "/"),
            ("/windlass", "/"),
            ("/v1/tasks", "/v1/tasks"),
            ("/windlassian", "/windlassian"),
            ("/windlass/windlass", "/windlass"),
        ] {
            assert_eq!(prefix.strip(path), stripped);
            assert_eq!(none.strip(path), path);
        }
    }
}
