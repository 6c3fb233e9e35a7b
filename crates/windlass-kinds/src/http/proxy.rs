//! Proxies from the environment, used only if the operator allows it.
//!
//! A proxy gets a `CONNECT` to the checked address, for http and https alike. This process resolves and
//! checks names, so a proxy does not widen what a task may reach.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use http::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    cidr::Cidr,
    connect::{Connector, Resolver, Stream},
    headers,
    url::{Host, Url},
};

/// Longest answer of a proxy to `CONNECT`.
const ANSWER_MAX_BYTES: usize = 8 << 10;

/// Which proxy serves which target; by default none.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    bypass: Vec<Bypass>,
}

/// One proxy.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    host: Host,
    port: u16,
    authorization: Option<HeaderValue>,
}

/// A target that is reached without the proxy.
#[derive(Debug)]
enum Bypass {
    Everything,
    Block(Cidr),
    /// The name and all its subdomains.
    Domain(String),
}

impl Proxies {
    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`; a lower-case variable wins over an
    /// upper-case one.
    pub(crate) fn read(env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let lookup = |name: &str| {
            env(name).or_else(|| env(&name.to_ascii_uppercase())).filter(|text| !text.trim().is_empty())
        };
        let proxy = |name: &str| match lookup(name) {
            Some(text) => Proxy::parse(&text).map(Some).map_err(|reason| format!("{name} {reason}")),
            None => Ok(None),
        };
        let all = proxy("all_proxy")?;
        let bypass = lookup("no_proxy").unwrap_or_default();
        Ok(Self {
            http: proxy("http_proxy")?.or_else(|| all.clone()),
            https: proxy("https_proxy")?.or(all),
            bypass: bypass
                .split(',')
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(Bypass::parse)
                .collect(),
        })
    }

    /// The proxy for a target, if it has one.
    pub(crate) fn for_target(&self, host: &Host, address: IpAddr, is_secure: bool) -> Option<&Proxy> {
        let proxy = if is_secure { self.https.as_ref() } else { self.http.as_ref() };
        proxy.filter(|_| !self.bypass.iter().any(|bypass| bypass.covers(host, address)))
    }
}

impl Bypass {
    fn parse(text: &str) -> Self {
        match text.parse() {
            _ if text == "*" => Self::Everything,
            Ok(block) => Self::Block(block),
            Err(_) => Self::Domain(text.trim_start_matches('.').to_ascii_lowercase()),
        }
    }

    fn covers(&self, host: &Host, address: IpAddr) -> bool {
        match (self, host) {
            (Self::Everything, _) => true,
            (Self::Block(block), _) => block.contains(address),
            (Self::Domain(domain), Host::Name(name)) => {
                let parent = name.strip_suffix(domain.as_str());
                parent.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Self::Domain(_), Host::Ip(_)) => false,
        }
    }
}

impl Proxy {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let parsed = Url::parse(&with_scheme)?;
        if parsed.url.secure {
            return Err("must begin with http://: other proxies are not supported".to_owned());
        }
        let authorization = parsed.userinfo.map(headers::basic).transpose()?;
        Ok(Self { host: parsed.url.host, port: parsed.url.port, authorization })
    }

    /// A connection through the proxy to exactly this address.
    pub(crate) async fn tunnel(
        &self,
        target: SocketAddr,
        resolver: &dyn Resolver,
        connector: &dyn Connector,
    ) -> io::Result<Box<dyn Stream>> {
        // The operator chose the proxy, so its own address is not checked by the policy for targets.
        let address = match &self.host {
            Host::Ip(address) => Some(*address),
            Host::Name(name) => resolver.resolve(name).await?.into_iter().next(),
        };
        let address = address.ok_or_else(|| io::Error::other("the proxy has no address"))?;
        let mut stream = connector.connect(SocketAddr::new(address, self.port)).await?;
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(credentials) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(credentials.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await?;
        stream.flush().await?;
        check_answer(&mut stream).await?;
        Ok(stream)
    }
}

/// Reads the proxy's answer byte by byte, because the bytes after it belong to the target.
async fn check_answer(stream: &mut Box<dyn Stream>) -> io::Result<()> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_MAX_BYTES {
            return Err(io::Error::other("the proxy's answer to CONNECT is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
    if status.first() == Some(&b'2') {
        Ok(())
    } else {
        let shown = String::from_utf8_lossy(status);
        Err(io::Error::other(format!("the proxy answered CONNECT with {shown:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        Proxies::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn port(proxies: &Proxies, host: &str, address: &str, is_secure: bool) -> Option<u16> {
        let host = Host::parse(host).unwrap();
        proxies.for_target(&host, address.parse().unwrap(), is_secure).map(|proxy| proxy.port)
    }

    #[test]
    fn each_scheme_has_its_proxy_except_for_no_proxy() {
        let proxies = read(&[
            ("HTTP_PROXY", "http://upper:1"),
            ("http_proxy", "lower:2"),
            ("ALL_PROXY", "http://all:3/"),
            ("no_proxy", " .internal.example, 10.0.0.0/8,example.org"),
        ])
        .unwrap();
        assert_eq!(port(&proxies, "example.com", "1.1.1.1", false), Some(2));
        assert_eq!(port(&proxies, "example.com", "1.1.1.1", true), Some(3));
        assert_eq!(port(&proxies, "a.internal.example", "1.1.1.1", true), None);
        assert_eq!(port(&proxies, "example.org", "1.1.1.1", true), None);
        assert_eq!(port(&proxies, "notexample.org", "1.1.1.1", true), Some(3));
        assert_eq!(port(&proxies, "example.com", "10.1.1.1", false), None);
        let none = read(&[("https_proxy", "p:1"), ("NO_PROXY", "*")]).unwrap();
        assert_eq!(port(&none, "example.com", "1.1.1.1", true), None);
        assert_eq!(port(&read(&[("http_proxy", " ")]).unwrap(), "example.com", "1.1.1.1", false), None);
    }

    #[test]
    fn an_invalid_proxy_is_refused_without_its_password() {
        for value in ["socks5://me:secret@host:1", "https://me:secret@host:1", "me:secret@host:port"] {
            let error = read(&[("HTTPS_PROXY", value)]).unwrap_err();
            assert!(error.contains("https_proxy") && !error.contains("secret"), "{error}");
        }
    }
}
