//! Which servers, and how long they may take.

use std::{fmt, str::FromStr, time::Duration};

use windlass_core::Error;

/// Most servers that may be named.
const SERVERS_MAX: usize = 100;

/// Servers of one installation; any of them will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers(Vec<Server>);

/// Where one server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Server {
    /// The start of every URI.
    pub(crate) fn origin(&self) -> String {
        // An address of version 6 stands in brackets, as it was given.
        format!("http://{}:{}", self.host, self.port)
    }

    /// What a resolver takes.
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

    /// Reads `http://host:port`, or several with commas between them.
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
    if text.starts_with("https://") {
        return Err(wrong("asks for TLS, which this version does not have"));
    }
    let uri: http::Uri = text.parse().map_err(|_| wrong("is not an address"))?;
    let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
    if uri.scheme_str() != Some("http") || authority.as_str().contains('@') {
        return Err(wrong("is not an http address"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("has more than a host and a port"));
    }
    Ok(Server { host: authority.host().to_owned(), port: authority.port_u16().unwrap_or(80) })
}

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// A connection to one server.
    pub connect_max: Duration,
    /// A usual call.
    pub call_max: Duration,
    /// A renewal of a lease: short, so that another server is asked while the lease is still in force.
    pub renew_max: Duration,
    /// A call that looks at everything, such as the audit.
    pub long_call_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_max: Duration::from_secs(2),
            call_max: Duration::from_secs(10),
            renew_max: Duration::from_secs(2),
            long_call_max: Duration::from_mins(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_read_and_shown() {
        let servers: Servers = "http://a:7878, http://[::1]:7879/".parse().unwrap();
        assert_eq!(servers.to_string(), "http://a:7878,http://[::1]:7879");
        assert_eq!(servers.all().iter().map(Server::name).collect::<Vec<_>>(), ["a", "::1"]);
    }

    #[test]
    fn what_is_not_a_server_is_refused_with_what_to_write() {
        for text in [
            "",
            "a:1",
            "ftp://a",
            "https://a:1",
            "http://u@a",
            "http://a/v1",
            "http://a?x",
            "http://a,,http://b",
        ] {
            let error = text.parse::<Servers>().unwrap_err().to_string();
            assert!(error.contains("http://host:7878"), "{text}: {error}");
        }
    }
}
