//! The servers, and time limits.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use windlass_core::Error;

use crate::network::Network;

/// Most servers in one setting.
const SERVERS_MAX: usize = 100;

/// The servers of one installation; each of them is equivalent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers(Vec<Server>);

/// The address of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Server {
    /// The start of every URI.
    pub(crate) fn origin(&self) -> String {
        // An IPv6 address is in brackets, as in the given text.
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    /// The host as a resolver needs it.
    pub(crate) fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl Servers {
    pub(crate) fn all(&self) -> &[Server] {
        &self.0
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins: Vec<_> = self.0.iter().map(Server::origin).collect();
        f.write_str(&origins.join(","))
    }
}

impl FromStr for Servers {
    type Err = Error;

    /// Reads `http://host:port` or `https://host:port`, or several with commas between them.
    fn from_str(text: &str) -> Result<Self, Error> {
        let servers = text.split(',').map(|one| server(one.trim())).collect::<Result<Vec<_>, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(Error::invalid(format!("server names more than {SERVERS_MAX} servers")));
        }
        Ok(Self(servers))
    }
}

fn server(text: &str) -> Result<Server, Error> {
    let shown: String = text.chars().take(80).collect();
    let wrong = |why: &str| Error::invalid(format!("server {shown:?} {why}; write it like http://host:7878"));
    let uri: http::Uri = text.parse().map_err(|_| wrong("is not an address"))?;
    let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
    let is_tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong("is not an http address")),
    };
    if authority.as_str().contains('@') {
        return Err(wrong("names a user; use a token instead"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("has more than a host and a port"));
    }
    let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    Ok(Server { is_tls, host: authority.host().to_owned(), port })
}

/// Credentials, trusted authorities, and time limits.
#[derive(Clone)]
pub struct Options {
    /// The token that calls send.
    pub token: Option<String>,
    /// The trusted authorities for `https://`, a file in PEM; those of the system without it.
    pub ca: Option<PathBuf>,
    /// Limit of a connection attempt to one server.
    pub connect_max: Duration,
    /// Limit of a usual call.
    pub call_max: Duration,
    /// Limit of a renewal of a lease: short, so that another server can be tried before the lease expires.
    pub renew_max: Duration,
    /// Limit of a call that reads everything, such as the audit.
    pub long_call_max: Duration,
    /// How to reach a server.
    #[doc(hidden)]
    pub network: Network,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: None,
            ca: None,
            connect_max: Duration::from_secs(2),
            call_max: Duration::from_secs(10),
            renew_max: Duration::from_secs(2),
            long_call_max: Duration::from_mins(1),
            network: Network::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token must not appear in logs.
        f.debug_struct("Options")
            .field("ca", &self.ca)
            .field("call_max", &self.call_max)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_read_and_shown() {
        let servers: Servers = "http://a:7878, http://[::1]:7879/, https://b".parse().unwrap();
        assert_eq!(servers.to_string(), "http://a:7878,http://[::1]:7879,https://b:443");
        assert_eq!(servers.all().iter().map(Server::name).collect::<Vec<_>>(), ["a", "::1", "b"]);
    }

    #[test]
    fn a_wrong_server_address_is_refused_with_an_example() {
        for text in ["", "a:1", "ftp://a", "http://u@a", "http://a/v1", "http://a?x", "http://a,,http://b"] {
            let error = text.parse::<Servers>().unwrap_err().to_string();
            assert!(error.contains("http://host:7878"), "{text}: {error}");
        }
    }
}
