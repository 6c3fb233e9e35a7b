//! The address that spans are sent to.

use std::{fmt, str::FromStr};

use http::Uri;

/// The path of traces below a collector's address, as OTLP defines it.
const PATH: &str = "/v1/traces";

/// The address of a collector, such as `http://127.0.0.1:4318`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

/// Why a text is not a usable address of a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL.
    #[error("must be a collector's address such as http://127.0.0.1:4318")]
    NotAnAddress,
    /// TLS.
    #[error(
        "must start with http://; for https:// let a collector on this machine or network forward the spans"
    )]
    Tls,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let base = text.trim_end_matches('/');
        let whole = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") };
        let uri: Uri = whole.parse().map_err(|_| EndpointError::NotAnAddress)?;
        match (uri.scheme_str(), uri.authority(), uri.query()) {
            (Some("http"), Some(authority), None) if !authority.as_str().contains('@') => Ok(Self(uri)),
            (Some("https"), ..) => Err(EndpointError::Tls),
            _ => Err(EndpointError::NotAnAddress),
        }
    }
}

impl Endpoint {
    pub(crate) fn uri(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for text in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces", "http://c:4318/v1/traces/"]
        {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), "http://c:4318/v1/traces", "{text}");
        }
        assert_eq!("http://c/otlp".parse::<Endpoint>().unwrap().to_string(), "http://c/otlp/v1/traces");
    }

    #[test]
    fn an_unusable_address_is_refused() {
        for text in
            ["", "c:4318", "grpc://c:4317", "http://", "http://a b", "http://c?x=1", "http://user:secret@c"]
        {
            assert_eq!(text.parse::<Endpoint>(), Err(EndpointError::NotAnAddress), "{text}");
        }
        assert_eq!("https://c".parse::<Endpoint>(), Err(EndpointError::Tls));
    }
}
