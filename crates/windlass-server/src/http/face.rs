//! How browsers see a server: its hosts, its origin and prefix, and the cookie of a session.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::Request,
    extract::State,
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::{
    HeaderMap, HeaderValue, header,
    uri::{PathAndQuery, Uri},
};

use super::{Options, guard::Hosts};
use crate::public_url::{Prefix, PublicUrl};

/// How browsers see a server at one address.
#[derive(Debug)]
pub(crate) struct Face {
    pub(super) hosts: Hosts,
    pub(super) cookie: Cookie,
    prefix: Prefix,
}

impl Face {
    /// The face of a server that listens at this address.
    pub(super) fn new(listen: SocketAddr, options: &Options) -> Arc<Self> {
        let (public, has_tls) = (options.public_url.as_ref(), options.tls.is_some());
        Arc::new(Self {
            hosts: Hosts::new(listen, &options.allowed_hosts, public.cloned(), has_tls),
            cookie: Cookie::new(listen, has_tls, public),
            prefix: public.map(|public| public.prefix().clone()).unwrap_or_default(),
        })
    }

    /// What every link begins with.
    pub(crate) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The same routes with the prefix and without it: some proxies remove it.
    pub(super) fn under_prefix(self: &Arc<Self>, routes: Router) -> Router {
        if self.prefix.as_str().is_empty() {
            return routes;
        }
        Router::new().fallback_service(routes).layer(from_fn_with_state(Arc::clone(self), strip))
    }
}

async fn strip(State(face): State<Arc<Face>>, mut request: Request, next: Next) -> Response {
    if let Some(uri) = stripped(&face.prefix, request.uri()) {
        *request.uri_mut() = uri;
    }
    next.run(request).await
}

/// A URI without the prefix; `None` if it does not have it.
fn stripped(prefix: &Prefix, uri: &Uri) -> Option<Uri> {
    let path = prefix.strip(uri.path());
    if path == uri.path() {
        return None;
    }
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(text.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// The cookie of a session.
#[derive(Debug)]
pub(crate) struct Cookie {
    name: String,
    attributes: String,
}

/// What the cookies of a request hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// No session.
    Nothing,
    /// One text; it may be anything.
    One(&'a str),
    /// Two cookies of the name: a page of another host or path may have set one of them.
    Several,
}

impl Cookie {
    /// A browser sends a cookie without `Secure` over plain HTTP too. So only a server that nothing but this
    /// machine reaches, and without TLS, has such a cookie.
    fn new(listen: SocketAddr, has_tls: bool, public: Option<&PublicUrl>) -> Self {
        let prefix = public.map_or("", |public| public.prefix().as_str());
        let is_local = listen.ip().to_canonical().is_loopback();
        if is_local && !has_tls && !public.is_some_and(PublicUrl::is_https) {
            // Cookies are shared by all ports of a host: two servers must not overwrite each other's.
            let name = format!("windlass-{}{}", listen.port(), prefix.replace('/', "-"));
            let path = if prefix.is_empty() { "/" } else { prefix };
            return Self { name, attributes: format!("Path={path}; HttpOnly; SameSite=Strict") };
        }
        // A browser takes a cookie of this prefix only over TLS and from this very host, with the path `/`.
        let name = format!("__Host-windlass{}", prefix.replace('/', "-"));
        Self { name, attributes: "Path=/; HttpOnly; SameSite=Strict; Secure".to_owned() }
    }

    /// The session in the cookies of a request.
    pub(super) fn read<'a>(&self, headers: &'a HeaderMap) -> Shown<'a> {
        let mut found = Shown::Nothing;
        let pairs =
            headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|b| *b == b';'));
        for pair in pairs {
            let pair = pair.trim_ascii();
            let Some(value) =
                pair.strip_prefix(self.name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
            else {
                continue;
            };
            found = match found {
                Shown::Nothing => Shown::One(std::str::from_utf8(value).unwrap_or_default()),
                _ => return Shown::Several,
            };
        }
        found
    }

    /// Gives a browser a session for this many seconds.
    pub(super) fn set(&self, text: &str, seconds: u64) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("{}={text}; Max-Age={seconds}; {}", self.name, self.attributes)).ok()
    }

    /// Takes the cookie from a browser.
    pub(super) fn clear(&self) -> Option<HeaderValue> {
        self.set("", 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(listen: &str, has_tls: bool, public: Option<&str>) -> Cookie {
        let public: Option<PublicUrl> = public.map(|text| text.parse().unwrap());
        Cookie::new(listen.parse().unwrap(), has_tls, public.as_ref())
    }

    #[test]
    fn the_cookie_is_secure_unless_only_this_machine_sees_it() {
        for (listen, has_tls, public, name, path, is_secure) in [
            ("127.0.0.1:7878", false, None, "windlass-7878", "/", false),
            ("127.0.0.1:7878", true, None, "__Host-windlass", "/", true),
            ("127.0.0.1:7878", false, Some("https://a.b"), "__Host-windlass", "/", true),
            ("127.0.0.1:7878", false, Some("https://a.b/x/y"), "__Host-windlass-x-y", "/", true),
            ("127.0.0.1:7878", false, Some("http://a.b/x"), "windlass-7878-x", "/x", false),
            ("10.1.2.3:7878", false, None, "__Host-windlass", "/", true),
            ("0.0.0.0:7878", false, Some("http://a.b"), "__Host-windlass", "/", true),
        ] {
            let cookie = cookie(listen, has_tls, public);
            let set = cookie.set("v", 60).unwrap().to_str().unwrap().to_owned();
            let secure = if is_secure { "; Secure" } else { "" };
            let expected = format!("{name}=v; Max-Age=60; Path={path}; HttpOnly; SameSite=Strict{secure}");
            assert_eq!(set, expected, "{listen} {has_tls} {public:?}");
        }
    }

    #[test]
    fn a_session_is_read_from_exactly_one_cookie_of_its_name() {
        let cookie = cookie("10.1.2.3:7878", true, None);
        let read = |values: &[&[u8]]| {
            let value = |value: &&[u8]| (header::COOKIE, HeaderValue::from_bytes(value).unwrap());
            let headers: HeaderMap = values.iter().map(value).collect();
            match cookie.read(&headers) {
                Shown::Nothing => "nothing".to_owned(),
                Shown::One(text) => text.to_owned(),
                Shown::Several => "several".to_owned(),
            }
        };
        assert_eq!(read(&[]), "nothing");
        assert_eq!(read(&[b"__Host-windlass=a"]), "a");
        assert_eq!(read(&[b"x=1;__Host-windlass=a=b ; y"]), "a=b");
        assert_eq!(read(&[b"x=\xff", b"__Host-windlass=a"]), "a", "HTTP/2 may split the header");
        assert_eq!(read(&[b"__Host-windlass=a; __Host-windlass=a"]), "several");
        assert_eq!(read(&[b"__Host-windlass=a", b"__Host-windlass=b"]), "several");
        assert_eq!(read(&[b"__host-windlass=a; __HOST-WINDLASS=a; windlass=a"]), "nothing");
        assert_eq!(read(&[b"__Host-windlass-x=a; x__Host-windlass=a; __Host-windlass"]), "nothing");
        assert_eq!(read(&[b"__Host-windlass=\xff"]), "");
    }

    #[test]
    fn a_prefix_is_stripped_with_the_query_kept() {
        let url: PublicUrl = "https://a.b/w".parse().unwrap();
        let stripped = |text: &str| stripped(url.prefix(), &text.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(stripped("/w/v1/tasks?limit=1").as_deref(), Some("/v1/tasks?limit=1"));
        assert_eq!(stripped("http://a.b/w").as_deref(), Some("http://a.b/"));
        assert_eq!(stripped("/v1/tasks"), None);
    }
}
