//! The built-in task kinds of Windlass: [`Http`], [`Sleep`] and [`Echo`].
//!
//! Reading order: `http` (one attempt from payload to outcome), and in its folder `request` (the payload),
//! `url` and `target` (which hosts are allowed), `connect` (the connection), `redirect`, `verdict` and
//! `output` (the answer), `redact` (what people may see).

mod cancelled;
mod echo;
mod http;
mod sleep;

use std::sync::Arc;

use serde_json::Value;
use windlass::handler::RawHandler;

pub use echo::Echo;
pub use http::{
    Cidr, Connector, Http, HttpOptions, OptionsError, ParseCidrError, Resolver, Stream, check_http_payload,
    redact_http_payload,
};
pub use sleep::{Sleep, check_sleep_payload};

/// The name of a kind and its handler.
pub type Kind = (&'static str, Arc<dyn RawHandler>);

/// Every built-in kind.
///
/// # Errors
/// [`OptionsError`] if an option of `http` is invalid; the text names the setting.
pub fn builtin(options: HttpOptions) -> Result<Vec<Kind>, OptionsError> {
    Ok(vec![("http", Arc::new(Http::new(options)?)), ("sleep", Arc::new(Sleep)), ("echo", Arc::new(Echo))])
}

/// Checks the payload of a built-in kind before it is enqueued; the payload of any other kind passes.
///
/// # Errors
/// What is wrong and what is expected. Of the payload it quotes field names only.
pub fn check_payload(kind: &str, payload: &Value) -> Result<(), String> {
    match kind {
        "http" => check_http_payload(payload),
        "sleep" => check_sleep_payload(payload),
        _ => Ok(()),
    }
}

/// A name from a payload as an error shows it: short, so that a hostile name does not fill a log.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}
