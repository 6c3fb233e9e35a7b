//! Reads the URLs of tasks strictly: the checked host and the connected host must be the same.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use http::{Uri, uri::PathAndQuery};

/// Longest URL. Servers and most caches refuse longer ones.
const URL_MAX_BYTES: usize = 8 << 10;

/// The target of a request: an absolute http or https URL without userinfo and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) secure: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) path: PathAndQuery,
}

/// A host as an address or a name. A numeric form of an address is an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Ip(IpAddr),
    Name(String),
}

/// A URL, and separately the user name and password before its host, still percent-encoded.
pub(crate) struct Parsed<'a> {
    pub(crate) url: Url,
    pub(crate) userinfo: Option<&'a str>,
}

impl Url {
    /// Reads a URL. The error never quotes it: it may contain a password.
    pub(crate) fn parse(text: &str) -> Result<Parsed<'_>, String> {
        if text.len() > URL_MAX_BYTES {
            return Err(format!("is longer than {URL_MAX_BYTES} bytes"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("has spaces or control characters: percent-encode them".to_owned());
        }
        let (scheme, rest) = text.split_once("://").ok_or("must begin with http:// or https://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("must begin with http:// or https://".to_owned()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // Browsers read a backslash as a slash here, so two parsers would see two hosts.
        if authority.contains('\\') {
            return Err("has a backslash before its path".to_owned());
        }
        let (userinfo, host_and_port) = match authority.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, authority),
        };
        let (host, port) = split_port(host_and_port)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => default_port(secure),
        };
        let url = Self { secure, host: Host::parse(host)?, port, path: parse_path(path)? };
        Ok(Parsed { url, userinfo: userinfo.filter(|text| !text.is_empty()) })
    }

    /// The same as a hyper type.
    pub(crate) fn to_uri(&self) -> Result<Uri, http::Error> {
        let scheme = if self.secure { "https" } else { "http" };
        Uri::builder().scheme(scheme).authority(self.authority()).path_and_query(self.path.clone()).build()
    }

    /// Host and port for people and for the `Host` header: without a default port.
    pub(crate) fn authority(&self) -> String {
        if self.port == default_port(self.secure) {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether secrets for one URL may be sent to the other.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        self.secure == other.secure && self.host == other.host && self.port == other.port
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    let host_len = if text.starts_with('[') {
        text.find(']').ok_or("has an IPv6 address without its closing bracket")? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, rest) = text.split_at(host_len);
    match rest.strip_prefix(':') {
        Some("") => Ok((host, None)),
        Some(digits) => Ok((host, Some(digits))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err("has text between its host and its path".to_owned()),
    }
}

fn parse_port(digits: &str) -> Result<u16, String> {
    let port = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    port.filter(|port| *port != 0).ok_or_else(|| "has a port that is not a number from 1 to 65535".to_owned())
}

fn parse_path(text: &str) -> Result<PathAndQuery, String> {
    let mut path = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        path.push('/');
    }
    for byte in text.bytes() {
        if byte.is_ascii() {
            path.push(char::from(byte));
        } else {
            path.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
    }
    path.try_into().map_err(|_| "has characters in its path that must be percent-encoded".to_owned())
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

impl Host {
    /// Reads the host part of a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(v6) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Ipv6Addr = v6.parse().map_err(|_| "has a host that is not a valid IPv6 address")?;
            return Ok(Self::Ip(address.into()));
        }
        let name = text.to_ascii_lowercase();
        let bare = name.strip_suffix('.').unwrap_or(&name);
        let last = bare.rsplit('.').next().unwrap_or_default();
        if ends_in_a_number(last) {
            let address = parse_ipv4(bare).ok_or("has a host that is not a valid IPv4 address")?;
            return Ok(Self::Ip(address.into()));
        }
        if !bare.is_ascii() {
            return Err("has a host with letters beyond ASCII: write its xn-- form".to_owned());
        }
        let is_label = |label: &str| {
            matches!(label.len(), 1..=63)
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        if bare.len() > 253 || !bare.split('.').all(is_label) {
            return Err("has no valid host name".to_owned());
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
            Self::Ip(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Whether resolvers would read a host with this last label as an address.
fn ends_in_a_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x");
    match digits {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// Every form that `inet_aton` accepts: one to four parts, each decimal, octal or hexadecimal; the last part
/// fills the remaining bytes.
fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = text.split('.').map(parse_number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|part| *part > 255) {
        return None;
    }
    let free_bits = 32 - 8 * leading.len() as u32;
    if *last >= 1 << free_bits {
        return None;
    }
    let high = leading.iter().fold(0, |bits, part| (bits << 8) | part);
    u32::try_from((high << free_bits) | last).ok().map(Ipv4Addr::from_bits)
}

fn parse_number(part: &str) -> Option<u64> {
    if let Some(hex) = part.strip_prefix("0x") {
        return if hex.is_empty() { Some(0) } else { u64::from_str_radix(hex, 16).ok() };
    }
    match part.strip_prefix('0') {
        Some("") => Some(0),
        Some(octal) => u64::from_str_radix(octal, 8).ok(),
        None => part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}")).url
    }

    #[test]
    fn numeric_forms_of_a_host_are_read_as_addresses() {
        for (host, expected) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("0X7F.1", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("017700000001", "127.0.0.1"),
            ("0x7f.0.0x0.01", "127.0.0.1"),
            ("0", "0.0.0.0"),
            ("0x", "0.0.0.0"),
            ("10.1.65535", "10.1.255.255"),
            ("0251.0376.0251.0376", "169.254.169.254"),
            ("[::1]", "::1"),
            ("[::FFFF:127.0.0.1]", "::ffff:127.0.0.1"),
            ("[0:0:0:0:0:ffff:7f00:1]", "::ffff:127.0.0.1"),
        ] {
            let host = parse(&format!("http://{host}/")).host;
            assert_eq!(host, Host::Ip(expected.parse().unwrap()));
        }
    }

    #[test]
    fn hosts_that_parsers_disagree_about_are_refused() {
        for url in [
            "http://256.0.0.1/",
            "http://1.2.3.4.5/",
            "http://4294967296/",
            "http://0x100000000/",
            "http://08.0.0.1/",
            "http://1..2/",
            "http://example.1/",
            "http://[::1",
            "http://[::1]x/",
            "http://[fe80::1%25eth0]/",
            "http://[1.2.3.4]/",
            "http://127%2e0.0.1/",
            "http://example.com\\@evil.example/",
            "http://a..b/",
            "http:///path",
            "http://",
            "http://bücher.example/",
            "http://１２７.0.0.1/",
            "http://exa mple.com/",
            "http://example.com:0/",
            "http://example.com:65536/",
            "http://example.com:+80/",
            "http://a:b:c/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "example.com",
            "http://example.com/\r\nX: y",
        ] {
            assert!(Url::parse(url).is_err(), "{url}");
        }
        assert!(Url::parse(&format!("http://example.com/{}", "a".repeat(URL_MAX_BYTES))).is_err());
    }

    #[test]
    fn a_url_loses_fragment_userinfo_and_default_port() {
        for (text, uri) in [
            ("HTTP://EXAMPLE.com", "http://example.com/"),
            ("https://example.com:443/a%20b?q=1#part", "https://example.com/a%20b?q=1"),
            ("https://example.com:80?q", "https://example.com:80/?q"),
            ("http://u:p@example.com:8080/@x", "http://example.com:8080/@x"),
            ("http://[2606:4700::1]:81/", "http://[2606:4700::1]:81/"),
            ("http://example.com:/ü", "http://example.com/%C3%BC"),
            ("http://2130706433:81/", "http://127.0.0.1:81/"),
        ] {
            assert_eq!(parse(text).to_uri().unwrap().to_string(), uri);
        }
        assert_eq!(Url::parse("http://u:p@q@host/").unwrap().userinfo, Some("u:p@q"));
        assert_eq!(Url::parse("http://host/@").unwrap().userinfo, None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let home = parse("https://example.com/a");
        assert!(home.is_same_origin(&parse("https://EXAMPLE.com:443/b")));
        for other in ["http://example.com/a", "https://www.example.com/a", "https://example.com:8443/a"] {
            assert!(!home.is_same_origin(&parse(other)), "{other}");
        }
    }
}
