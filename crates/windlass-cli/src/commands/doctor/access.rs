//! Which callers can do what.

use std::{collections::BTreeMap, fmt::Write as _};

use windlass_core::Timestamp;
use windlass_server::api::{ErrorCode, TokenView};

use super::{Level, Report};
use crate::{
    access::{self, Exposed},
    backend::{
        Backend,
        client::{self, Client},
        credentials::Credentials,
    },
    config::{Settings, table},
    duration,
};

/// A token should be replaced after this age: a year.
const OLD_DAYS: u64 = 365;

/// Checks the access to the server that was found, or to the one that the settings would start. Then
/// checks the tokens.
pub(super) async fn checks(
    report: &mut Report,
    settings: &Settings,
    backend: &dyn Backend,
    has_server: bool,
) {
    if has_server {
        door(report, settings, &backend.place()).await;
    } else {
        planned(report, settings);
    }
    dashboard(report, settings);
    public(report, settings);
    match backend.tokens().await {
        Ok(tokens) => tokens_check(report, &tokens.tokens, duration::now()),
        Err(error) if matches!(error.code, ErrorCode::Forbidden | ErrorCode::Unauthorized) => {
            report.add("tokens", Level::Note, "only an admin token may see them");
        }
        Err(error) => report.add("tokens", Level::Note, format!("cannot be listed: {}", error.message)),
    }
}

/// Calls a server without a token to see what it allows.
async fn door(report: &mut Report, settings: &Settings, address: &str) {
    let ca = Credentials::from_settings(settings).ok().and_then(|credentials| credentials.ca);
    let answer = match Client::new(address, &Credentials { token: None, ca }) {
        Ok(stranger) => stranger.get_any::<serde_json::Value>("/v1/info").await,
        Err(_) => return,
    };
    let has_tls = address.starts_with("https:");
    let is_local = is_local(address);
    let way = if has_tls { "with TLS" } else { "without TLS" };
    let (level, detail) = match answer {
        Ok((status, _)) if status == http::StatusCode::UNAUTHORIZED => {
            let level = if has_tls || is_local { Level::Ok } else { Level::Note };
            (level, "every call needs a token or a client certificate")
        }
        Ok((status, _)) if status.is_success() && is_local => {
            (Level::Ok, "every program on this machine may do everything")
        }
        Ok((status, _)) if status.is_success() => {
            (Level::Wrong, "EVERY CALLER that can reach it may do everything; set auth = \"tokens\"")
        }
        _ => (Level::Note, "it could not be tried without a token"),
    };
    report.add("access", level, format!("{address}, {way}: {detail}"));
}

fn is_local(address: &str) -> bool {
    address.parse().is_ok_and(|uri| client::is_local(&uri))
}

/// Which callers `windlass up` with these settings would allow.
fn planned(report: &mut Report, settings: &Settings) {
    let Ok(listen) = settings.text(&table::LISTEN).parse() else { return };
    let has_tls = !settings.text(&table::TLS_CERT).is_empty();
    let is_public = access::public_url(settings).ok().flatten().is_some_and(|url| !url.is_local());
    let exposed = Exposed { listen, has_tls, is_public, insecure: false };
    let way = if has_tls { "with TLS" } else { "without TLS" };
    let said = match access::decide(exposed, &settings.text(&table::AUTH)) {
        Ok(windlass_server::access::Auth::Tokens) => {
            "every call would need a token or a client certificate".to_owned()
        }
        Ok(windlass_server::access::Auth::Open) => {
            "every program on this machine could do everything".to_owned()
        }
        Err(refused) => format!("`windlass up` would refuse: {}", refused.message),
    };
    report.add("access", Level::Note, format!("{listen}, {way}: {said}"));
}

/// Where browsers find the pages of `windlass up` with these settings.
fn dashboard(report: &mut Report, settings: &Settings) {
    if settings.text(&table::DASHBOARD) == "off" {
        report.add("dashboard", Level::Note, "off: `windlass up` with these settings serves no pages");
        return;
    }
    let own = settings.text(&table::DASHBOARD_LISTEN);
    let Ok(listen) = own.parse() else {
        report.add("dashboard", Level::Ok, "on the address of the API");
        return;
    };
    let has_tls = !settings.text(&table::TLS_CERT).is_empty();
    let is_public = access::public_url(settings).ok().flatten().is_some_and(|url| !url.is_local());
    let exposed = Exposed { listen, has_tls, is_public, insecure: false };
    match access::decide(exposed, &settings.text(&table::AUTH)) {
        Ok(_) => report.add("dashboard", Level::Ok, format!("on an address of its own, {listen}")),
        Err(refused) => {
            let detail = format!("`windlass up` would refuse without --insecure: {}", refused.message);
            report.add("dashboard", Level::Note, detail);
        }
    }
}

/// What `public_url` means for browsers. Only the settings of this command are known, not those of the
/// server.
fn public(report: &mut Report, settings: &Settings) {
    let Ok(Some(url)) = access::public_url(settings) else { return };
    let (level, detail) = match (url.is_https() || url.is_local(), settings.text(&table::AUTH).as_str()) {
        (_, "off") => (Level::Note, "no token is asked for; the proxy must ask who calls"),
        (true, _) => (Level::Ok, "browsers log in there with a token"),
        (false, _) => (Level::Note, "without TLS others on the way can read tokens and sessions"),
    };
    report.add("public_url", level, format!("{url}: {detail}"));
}

fn tokens_check(report: &mut Report, tokens: &[TokenView], now: Timestamp) {
    if tokens.is_empty() {
        report.add("tokens", Level::Ok, "none");
        return;
    }
    let mut by_scopes: BTreeMap<String, u32> = BTreeMap::new();
    for token in tokens {
        *by_scopes.entry(token.scopes.join("+")).or_default() += 1;
    }
    let counted: Vec<_> = by_scopes.iter().map(|(scopes, n)| format!("{n} {scopes}")).collect();
    let oldest = tokens.iter().map(|token| now.since(token.created_at)).max().unwrap_or_default();
    let expired = tokens.iter().filter(|token| token.expired).count();
    let plural = if tokens.len() == 1 { "token" } else { "tokens" };
    let mut detail = format!(
        "{} {plural}: {}; the oldest is {} old",
        tokens.len(),
        counted.join(", "),
        windlass_core::why::human(oldest)
    );
    let mut level = Level::Ok;
    if expired > 0 {
        level = Level::Note;
        // Writing to a string does not fail.
        let _ = write!(detail, "; {expired} expired: `windlass token revoke ID` removes one");
    }
    if oldest.as_secs() / 86_400 >= OLD_DAYS {
        level = Level::Note;
        detail.push_str("; exchange it: make a new one, use it, revoke the old one");
    }
    report.add("tokens", level, detail);
}

#[cfg(test)]
mod tests {
    use windlass_core::Name;

    use super::*;

    #[test]
    fn tokens_are_counted_by_scope_with_the_age_of_the_oldest() {
        let now: Timestamp = "2027-06-01T00:00:00Z".parse().unwrap();
        let token = |scopes: &[&str], created: &str, expired| TokenView {
            id: Name::new("token", "t").unwrap(),
            name: None,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            created_at: created.parse().unwrap(),
            expires_at: None,
            expired,
            last_used_at: None,
            queues: Vec::new(),
            kinds: Vec::new(),
        };
        let mut report = Report::default();
        tokens_check(&mut report, &[token(&["read"], "2027-05-31T00:00:00Z", false)], now);
        assert_eq!(
            (report.checks[0].level, report.checks[0].detail.contains("1 token: 1 read")),
            (Level::Ok, true)
        );
        let old = [
            token(&["admin"], "2025-01-01T00:00:00Z", false),
            token(&["read"], "2027-05-31T00:00:00Z", true),
        ];
        tokens_check(&mut report, &old, now);
        let check = &report.checks[1];
        assert_eq!(check.level, Level::Note);
        for part in ["2 tokens: 1 admin, 1 read", "1 expired", "exchange it"] {
            assert!(check.detail.contains(part), "{}", check.detail);
        }
    }

    #[test]
    fn a_local_address_is_recognised() {
        for address in ["http://127.0.0.1:7878", "https://localhost:1", "http://[::1]:7"] {
            assert!(is_local(address), "{address}");
        }
        for address in ["http://10.0.0.1:7878", "https://windlass.internal"] {
            assert!(!is_local(address), "{address}");
        }
    }
}
