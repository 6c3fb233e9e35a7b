//! Who can reach a server: what the settings say about its address, tokens and TLS, decided in one place.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};
use windlass_core::Scopes;
use windlass_server::{
    access::{self, Auth, Mode},
    http::{Options, Reloaded, Routes, Tls, TlsFiles},
    public_url::PublicUrl,
};

use crate::{
    config::{Setting, Settings, table},
    failure::{Exit, Failure},
};

mod listen;

pub use listen::Reserved;

/// How often the server checks the TLS files for changes. A certificate is renewed days before it
/// expires.
const TLS_LOOK: Duration = Duration::from_secs(10);

/// What the settings say about an address.
#[derive(Debug, Clone, Copy)]
pub struct Exposed {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether the server speaks TLS there.
    pub has_tls: bool,
    /// Whether a proxy passes calls of other machines on to it: `public_url` names another host.
    pub is_public: bool,
    /// Whether the user accepted an unprotected address with `--insecure`.
    pub insecure: bool,
}

/// Whether callers at an address must show a token. Refused if other machines could reach it unprotected
/// and the user has not allowed that (S1).
pub fn decide(exposed: Exposed, auth: &str) -> Result<Auth, Failure> {
    let Exposed { listen, has_tls, is_public, insecure } = exposed;
    let is_local = listen.ip().to_canonical().is_loopback();
    let decided = match auth {
        "tokens" => Auth::Tokens,
        "off" => Auth::Open,
        _ if !is_local && has_tls || is_public => Auth::Tokens,
        _ => Auth::Open,
    };
    let missing = match (has_tls, decided) {
        (true, Auth::Tokens) => return Ok(decided),
        (false, Auth::Open) => "no authentication and no TLS",
        (false, Auth::Tokens) => "no TLS, so tokens cross the network unencrypted",
        (true, Auth::Open) => "no authentication",
    };
    if is_local || insecure {
        return Ok(decided);
    }
    Err(Failure::new(Exit::Refused, format!("{listen} can be reached by others, and this server has {missing}"))
        .hint("listen on 127.0.0.1, or give it --tls-cert and --tls-key, or add --insecure if something else protects it"))
}

/// A server's options, as the settings want them for the address in `setting`.
pub struct Doors {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Everything that the server must know.
    pub options: Options,
}

impl Doors {
    /// Decides and reads the files of TLS.
    ///
    /// # Errors
    /// An address that other machines could reach unprotected; TLS files that cannot be used.
    pub fn from_settings(
        settings: &Settings,
        setting: &'static Setting,
        insecure: bool,
    ) -> Result<Self, Failure> {
        let (key, text) = (setting.key, settings.text(setting));
        let listen: SocketAddr = text
            .parse()
            .map_err(|_| Failure::usage(format!("{key} {text:?} is not an address with a port")))?;
        let tls = tls_files(settings)?.map(Tls::load).transpose().map_err(|error| {
            Failure::usage(format!("TLS cannot be used: {error}"))
                .hint("check tls_cert, tls_key and tls_client_ca")
        })?;
        let public_url = public_url(settings)?;
        let is_public = public_url.as_ref().is_some_and(|url| !url.is_local());
        let exposed = Exposed { listen, has_tls: tls.is_some(), is_public, insecure };
        let access = access::Options {
            auth: decide(exposed, &settings.text(&table::AUTH))?,
            mode: if settings.text(&table::READ_ONLY) == "on" { Mode::ReadOnly } else { Mode::Whole },
            rate_per_s: settings.number(&table::RATE_LIMIT) as u32,
            certificate_scopes: certificate_scopes(settings)?,
        };
        let allowed_hosts = settings.list(&table::ALLOWED_HOSTS);
        let connections_max = settings.number(&table::CONNECTIONS_MAX) as usize;
        // Long polls must not use up all connections: other calls need some too.
        let long_polls_max = connections_max - connections_max / 10;
        let retention = settings.retention();
        let bounds = Options { connections_max, long_polls_max, retention, ..Options::default() };
        Ok(Self { listen, options: Options { access, tls, allowed_hosts, public_url, ..bounds } })
    }

    /// The doors of the dashboard, if it has an address of its own. The routes of these doors, which are those
    /// of the API, change with it.
    ///
    /// # Errors
    /// As [`Self::from_settings`].
    pub fn of_pages(&mut self, settings: &Settings, insecure: bool) -> Result<Option<Self>, Failure> {
        if settings.text(&table::DASHBOARD) == "off" {
            self.options.routes = Routes::WithoutPages;
            return Ok(None);
        }
        if !settings.is_given(&table::DASHBOARD_LISTEN) {
            return Ok(None);
        }
        self.options.routes = Routes::PagesElsewhere;
        let mut pages = Self::from_settings(settings, &table::DASHBOARD_LISTEN, insecure)?;
        pages.options.routes = Routes::Pages;
        // Files of TLS are read once, so that both addresses change to new ones at the same time.
        pages.options.tls.clone_from(&self.options.tls);
        Ok(Some(pages))
    }

    /// The beginning of the server's address.
    pub fn scheme(&self) -> &'static str {
        if self.options.tls.is_some() { "https" } else { "http" }
    }
}

/// The address at which browsers reach the server, if it is another one.
///
/// # Errors
/// A text that is no such address.
pub fn public_url(settings: &Settings) -> Result<Option<PublicUrl>, Failure> {
    let text = settings.text(&table::PUBLIC_URL);
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|why| Failure::usage(format!("public_url {why}")))
}

fn certificate_scopes(settings: &Settings) -> Result<Scopes, Failure> {
    let text = settings.text(&table::TLS_CLIENT_SCOPES);
    text.parse().map_err(|error| Failure::usage(format!("tls_client_scopes: {error}")))
}

/// The files that the settings name, if they name any.
pub fn tls_files(settings: &Settings) -> Result<Option<TlsFiles>, Failure> {
    let path = |setting| {
        let text = settings.text(setting);
        (!text.is_empty()).then(|| PathBuf::from(text))
    };
    match (path(&table::TLS_CERT), path(&table::TLS_KEY), path(&table::TLS_CLIENT_CA)) {
        (Some(cert), Some(key), client_ca) => Ok(Some(TlsFiles { cert, key, client_ca })),
        (None, None, None) => Ok(None),
        (None, None, Some(_)) => Err(Failure::usage("tls_client_ca needs tls_cert and tls_key")),
        _ => Err(Failure::usage("tls_cert and tls_key go together").hint("give both, or neither")),
    }
}

/// Loads new certificates when their files change, and at once on SIGHUP. Never ends; does nothing
/// without TLS.
pub async fn keep_fresh(tls: Option<Arc<Tls>>) -> std::convert::Infallible {
    let (Some(tls), Ok(mut hangup)) = (tls, signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    let mut complaint = None;
    loop {
        let asked = tokio::select! {
            Some(()) = hangup.recv() => true,
            () = tokio::time::sleep(TLS_LOOK) => false,
        };
        match tls.reload() {
            Ok(Reloaded::Changed) => tracing::warn!("new certificates are in use"),
            Ok(Reloaded::Unchanged) if asked => tracing::warn!("SIGHUP: the certificates have not changed"),
            Ok(Reloaded::Unchanged) => {}
            // Log an error only once, and again on each SIGHUP.
            Err(error) if asked || complaint.as_ref() != Some(&error) => {
                tracing::error!(%error, "new certificates cannot be used; the old ones stay");
                complaint = Some(error);
                continue;
            }
            Err(_) => continue,
        }
        complaint = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(listen: &str, has_tls: bool, insecure: bool, auth: &str) -> Result<Auth, String> {
        let exposed = Exposed { listen: listen.parse().unwrap(), has_tls, is_public: false, insecure };
        decide(exposed, auth).map_err(|failure| failure.message)
    }

    #[test]
    fn loopback_is_open_unless_tokens_are_required() {
        for listen in ["127.0.0.1:1", "[::1]:1", "127.3.4.5:1", "[::ffff:127.0.0.1]:1"] {
            for has_tls in [false, true] {
                assert_eq!(decided(listen, has_tls, false, "auto"), Ok(Auth::Open), "{listen}");
                assert_eq!(decided(listen, has_tls, false, "off"), Ok(Auth::Open), "{listen}");
                assert_eq!(decided(listen, has_tls, false, "tokens"), Ok(Auth::Tokens), "{listen}");
            }
        }
    }

    #[test]
    fn public_address_needs_tls_and_tokens_or_insecure() {
        for listen in ["0.0.0.0:1", "10.1.2.3:1", "[::]:1"] {
            assert_eq!(decided(listen, true, false, "auto"), Ok(Auth::Tokens));
            assert_eq!(decided(listen, true, false, "tokens"), Ok(Auth::Tokens));
            for (has_tls, auth) in [(false, "auto"), (false, "tokens"), (false, "off"), (true, "off")] {
                let refused = decided(listen, has_tls, false, auth).unwrap_err();
                assert!(refused.contains("can be reached by others"), "{refused}");
            }
            assert_eq!(decided(listen, false, true, "auto"), Ok(Auth::Open));
            assert_eq!(decided(listen, false, true, "tokens"), Ok(Auth::Tokens));
            assert_eq!(decided(listen, true, true, "off"), Ok(Auth::Open));
            assert_eq!(
                decided(listen, true, true, "auto"),
                Ok(Auth::Tokens),
                "TLS asks for tokens by itself"
            );
        }
    }

    #[test]
    fn a_server_behind_a_proxy_asks_for_tokens_by_itself() {
        let listen = "127.0.0.1:1".parse().unwrap();
        let exposed = Exposed { listen, has_tls: false, is_public: true, insecure: false };
        let decided = |auth| decide(exposed, auth).map_err(|failure| failure.message);
        assert_eq!(decided("auto"), Ok(Auth::Tokens));
        assert_eq!(decided("off"), Ok(Auth::Open), "the proxy asks who calls");
    }
}
