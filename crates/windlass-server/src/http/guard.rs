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
    HeaderValue, Version, header,
    uri::{Authority, Uri},
};

use super::access::is_grpc;
use crate::{
    api::{ErrorCode, ErrorDetail},
    grpc,
};

/// The hosts that this server accepts.
#[derive(Debug)]
pub(super) struct Hosts {
    listen: SocketAddr,
    names: Vec<String>,
}

impl Hosts {
    pub(super) fn new(listen: SocketAddr, names: &[String]) -> Self {
        Self { listen, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether this server accepts a host (without port). Any port is accepted: a forwarded port still leads
    /// to this machine.
    fn contains(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
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

    /// Refuses a request with a foreign Host or Origin.
    fn check(&self, request: &Request) -> Result<(), ErrorDetail> {
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
        for origin in request.headers().get_all(header::ORIGIN) {
            if !is_same(origin, &host) {
                return Err(forbidden("requests from another origin are refused"));
            }
        }
        Ok(())
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
pub(super) async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    // `heads.rs` does not follow where such a body ends, so no request may come after it.
    let is_last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let mut response = match hosts.check(&request).and_then(|()| check_encoding(&request)) {
        Ok(()) => next.run(request).await,
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

    fn checked(listen: &str, headers: &[(&str, &str)]) -> Result<(), ErrorDetail> {
        let mut request = Request::builder().uri("/v1/tasks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let hosts = Hosts::new(listen.parse().unwrap(), &["windlass.internal".to_owned()]);
        hosts.check(&request.body(Body::empty()).unwrap())
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
}
