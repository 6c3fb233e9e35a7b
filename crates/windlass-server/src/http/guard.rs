//! Refuses a foreign Host and a foreign Origin (S1), and encoded bodies.
//!
//! Any web page can make a browser send requests to loopback. A page cannot choose these two headers: Origin
//! is the page's own, and Host still shows a foreign name that was rebound to our address.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Version, header,
    uri::{Authority, Uri},
};

use super::{access::is_grpc, face::Face};
use crate::{
    access::Site,
    api::{ErrorCode, ErrorDetail},
    grpc,
    public_url::PublicUrl,
};

/// The header in which a browser says from where a request was made.
const FETCH_SITE: &str = "sec-fetch-site";

/// The hosts that this server accepts, and the origin of its pages.
#[derive(Debug)]
pub(super) struct Hosts {
    listen: SocketAddr,
    names: Vec<String>,
    public: Option<PublicUrl>,
    has_tls: bool,
}

/// Whose page an Origin header names.
enum Origin {
    /// A page of this server.
    Own,
    /// A page of the same host and port, but not of the address that browsers should use.
    Beside,
    Foreign,
}

impl Hosts {
    pub(super) fn new(
        listen: SocketAddr,
        names: &[String],
        public: Option<PublicUrl>,
        has_tls: bool,
    ) -> Self {
        let names = names.iter().map(String::as_str).chain(public.as_ref().map(PublicUrl::host));
        Self { listen, names: names.map(|name| bare(name).to_ascii_lowercase()).collect(), public, has_tls }
    }

    /// Whether this server accepts a host (without port). Any port is accepted: a forwarded port still leads
    /// to this machine.
    fn contains(&self, host: &str) -> bool {
        let host = bare(host);
        if self.names.iter().any(|name| name == host) {
            return true;
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            let ip = ip.to_canonical();
            // An address, unlike a name, cannot be rebound. So a server that listens on every address accepts
            // every address.
            let every = self.listen.ip().is_unspecified();
            return every || ip.is_loopback() || ip == self.listen.ip().to_canonical();
        }
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        host == "localhost" || self.names.iter().any(|name| name == host)
    }

    /// Refuses a request with a foreign Host or Origin. Answers whether the request is known to come from a
    /// page of this server.
    fn check(&self, request: &Request) -> Result<Site, ErrorDetail> {
        let mut given = request.headers().get_all(header::HOST).iter();
        let host = match (given.next(), given.next(), request.uri().authority()) {
            (Some(host), None, _) => {
                authority(host).ok_or_else(|| forbidden("the Host header is not a host"))?
            }
            // HTTP/2 sends the host in a field of its own.
            (None, None, Some(authority)) if request.version() == Version::HTTP_2 => authority.clone(),
            _ => return Err(forbidden("the request must have exactly one Host header")),
        };
        // A request line with a whole URL names the host a second time.
        for authority in request.uri().authority().into_iter().chain([&host]) {
            if authority.as_str().contains('@') || !self.contains(authority.host()) {
                let shown: String = authority.host().chars().take(80).collect();
                return Err(forbidden(format!("this server does not answer to the host {shown:?}"))
                    .hint("use localhost, 127.0.0.1, [::1] or the listen address"));
            }
        }
        let mut site = fetched_from(request.headers());
        for origin in request.headers().get_all(header::ORIGIN) {
            match self.origin(origin, &host) {
                Origin::Own if site == Site::Unsaid => site = Site::Own,
                Origin::Own => {}
                Origin::Beside => site = Site::Foreign,
                Origin::Foreign => return Err(forbidden("requests from another origin are refused")),
            }
        }
        Ok(site)
    }

    /// A proxy may remove the port from Host. Then a page at another port of the same host would look like one
    /// of this server. So with a public address, an Origin at its host is compared with that address alone.
    fn origin(&self, origin: &HeaderValue, host: &Authority) -> Origin {
        if let Some(public) = &self.public {
            return match () {
                () if origin.as_bytes().eq_ignore_ascii_case(public.origin().as_bytes()) => Origin::Own,
                () if host.host().eq_ignore_ascii_case(public.host()) => Origin::Foreign,
                () if is_same(origin, host) => Origin::Beside,
                () => Origin::Foreign,
            };
        }
        match is_same(origin, host) {
            false => Origin::Foreign,
            // Who changes what plain HTTP brings can make pages of this host without TLS.
            true if self.has_tls && !origin.as_bytes().starts_with(b"https:") => Origin::Beside,
            true => Origin::Own,
        }
    }
}

/// A host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// What a browser says about the page that sent a request.
fn fetched_from(headers: &HeaderMap) -> Site {
    let told = headers.get_all(FETCH_SITE);
    match headers.contains_key(FETCH_SITE) {
        false => Site::Unsaid,
        true if told.iter().all(|site| site == "same-origin") => Site::Own,
        true => Site::Foreign,
    }
}

/// Refuses an encoded body. The server does not decode it, and would call it broken JSON.
fn check_encoding(request: &Request) -> Result<(), ErrorDetail> {
    for value in request.headers().get_all(header::CONTENT_ENCODING) {
        let codings = value.to_str().unwrap_or("?").split(',').map(str::trim);
        if codings.filter(|coding| !coding.is_empty()).any(|coding| !coding.eq_ignore_ascii_case("identity"))
        {
            let error = ErrorDetail::new(
                ErrorCode::UnsupportedMediaType,
                "the body must not have a content-encoding",
            );
            return Err(error.hint("send it as it is; for a smaller body send smaller batches"));
        }
    }
    Ok(())
}

fn authority(value: &HeaderValue) -> Option<Authority> {
    value.to_str().ok()?.parse().ok()
}

fn is_same(origin: &HeaderValue, host: &Authority) -> bool {
    let Some(origin) = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok()) else { return false };
    let web = matches!(origin.scheme_str(), Some("http" | "https"));
    web && origin.authority().is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host.as_str()))
}

fn forbidden(message: impl Into<String>) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::Forbidden, message)
}

/// Checks every request, HTTP/JSON or gRPC, also for routes that do not exist, and adds headers to every
/// answer.
pub(super) async fn guard(State(face): State<Arc<Face>>, mut request: Request, next: Next) -> Response {
    // `heads.rs` does not follow where such a body ends, so no request may come after it.
    let is_last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let checked = face.hosts.check(&request).and_then(|site| check_encoding(&request).map(|()| site));
    let mut response = match checked {
        Ok(site) => {
            request.extensions_mut().insert(site);
            next.run(request).await
        }
        Err(error) if is_grpc(request.headers()) => grpc::refuse(error),
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A page says what it may load, and an asset that it may be kept.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    if is_last {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An answer of the API may not load, run, frame or send anything if a browser shows it.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn site(
        listen: &str,
        public: Option<&str>,
        has_tls: bool,
        headers: &[(&str, &str)],
    ) -> Result<Site, ErrorDetail> {
        let mut request = Request::builder().uri("/v1/tasks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let public = public.map(|text| text.parse().unwrap());
        let hosts = Hosts::new(listen.parse().unwrap(), &["windlass.internal".to_owned()], public, has_tls);
        hosts.check(&request.body(Body::empty()).unwrap())
    }

    fn checked(listen: &str, headers: &[(&str, &str)]) -> Result<(), ErrorDetail> {
        site(listen, None, false, headers).map(drop)
    }

    #[test]
    fn loopback_listen_address_and_allowed_names_are_accepted() {
        for host in [
            "localhost",
            "LocalHost:7878",
            "localhost.:80",
            "127.0.0.1",
            "127.8.9.1:1",
            "[::1]:7878",
            "[::ffff:127.0.0.1]",
            "10.1.2.3:7878",
            "windlass.internal",
        ] {
            assert_eq!(checked("10.1.2.3:7878", &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn foreign_hosts_are_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil@127.0.0.1",
            "10.9.9.9",
            "0.0.0.0",
            "[::]",
            "",
            "a b",
            "2130706433",
        ] {
            let refused = checked("10.1.2.3:7878", &[("host", host)]);
            assert_eq!(refused.unwrap_err().code, ErrorCode::Forbidden, "{host}");
        }
        assert!(checked("127.0.0.1:1", &[]).is_err());
        assert!(checked("127.0.0.1:1", &[("host", "localhost"), ("host", "evil.example")]).is_err());
    }

    #[test]
    fn listening_everywhere_accepts_addresses_but_no_names() {
        assert!(checked("0.0.0.0:7878", &[("host", "192.168.7.7:7878")]).is_ok());
        assert!(checked("0.0.0.0:7878", &[("host", "evil.example:7878")]).is_err());
    }

    #[test]
    fn only_the_same_origin_is_taken() {
        let from = |origin| checked("127.0.0.1:1", &[("host", "localhost:7878"), ("origin", origin)]);
        assert!(from("http://localhost:7878").is_ok());
        for origin in [
            "http://evil.example",
            "http://localhost:3000",
            "http://localhost",
            "http://127.0.0.1:7878",
            "ftp://localhost:7878",
            "null",
            "localhost:7878",
            "",
        ] {
            assert!(from(origin).is_err(), "{origin}");
        }
    }

    /// The site of a request to `host` with these two headers; "-" for an absent one.
    fn of(public: Option<&str>, has_tls: bool, host: &str, origin: &str, fetch: &str) -> Option<Site> {
        let all = [("host", host), ("origin", origin), (FETCH_SITE, fetch)];
        let headers: Vec<_> = all.into_iter().filter(|(_, value)| *value != "-").collect();
        site("127.0.0.1:7878", public, has_tls, &headers).ok()
    }

    #[test]
    fn a_request_is_of_an_own_page_only_if_all_headers_say_so() {
        let of = |origin, fetch| of(None, false, "localhost:7878", origin, fetch);
        assert_eq!(of("http://localhost:7878", "same-origin"), Some(Site::Own));
        assert_eq!(of("http://localhost:7878", "-"), Some(Site::Own));
        assert_eq!(of("-", "same-origin"), Some(Site::Own));
        assert_eq!(of("-", "-"), Some(Site::Unsaid));
        for fetch in ["none", "same-site", "cross-site", "Same-Origin", ""] {
            assert_eq!(of("http://localhost:7878", fetch), Some(Site::Foreign), "{fetch}");
            assert_eq!(of("-", fetch), Some(Site::Foreign), "{fetch}");
        }
        assert_eq!(of("null", "same-origin"), None);
        assert_eq!(of("http://localhost:3000", "same-origin"), None);
    }

    #[test]
    fn a_page_without_tls_is_not_of_a_server_with_tls() {
        let of = |origin| of(None, true, "localhost:7878", origin, "-");
        assert_eq!(of("https://localhost:7878"), Some(Site::Own));
        assert_eq!(of("http://localhost:7878"), Some(Site::Foreign));
    }

    #[test]
    fn the_public_origin_counts_whatever_host_a_proxy_sends() {
        let public = "https://ops.example.com:8443/windlass";
        let of = |host, origin| of(Some(public), false, host, origin, "-");
        for host in ["ops.example.com:8443", "ops.example.com", "127.0.0.1:7878"] {
            assert_eq!(of(host, "https://ops.example.com:8443"), Some(Site::Own), "{host}");
            assert_eq!(of(host, "https://OPS.example.com:8443"), Some(Site::Own), "{host}");
            assert_eq!(of(host, "https://ops.example.com"), None, "{host}");
            assert_eq!(of(host, "http://ops.example.com:8443"), None, "{host}");
        }
        assert_eq!(of("127.0.0.1:7878", "http://127.0.0.1:7878"), Some(Site::Foreign));
        assert_eq!(of("evil.example", "https://ops.example.com:8443"), None);
    }

    #[test]
    fn a_public_address_may_be_a_number() {
        let of = |public, host| of(Some(public), false, host, "-", "-");
        assert_eq!(of("http://10.9.9.9:80", "10.9.9.9"), Some(Site::Unsaid));
        assert_eq!(of("https://[2001:db8::1]", "[2001:db8::1]"), Some(Site::Unsaid));
        assert_eq!(of("http://10.9.9.9:80", "10.9.9.8"), None);
    }
}
