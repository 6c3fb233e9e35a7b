//! Log lines: to stderr, as text or JSON, never a payload.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use windlass_server::access::AUDIT;

use crate::config::{Settings, table};

/// Starts logging as the settings say. A second call changes nothing.
pub fn start(settings: &Settings) {
    let level = match settings.text(&table::LOG_LEVEL).as_str() {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => LevelFilter::WARN,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_max_level(if level == LevelFilter::OFF { level } else { level.max(LevelFilter::INFO) })
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !no_color);
    // The client of the broker writes frames with payloads at trace, and failures that are ours to handle and to log.
    // Who changed what is told at every level: a log that holds it only sometimes proves nothing.
    let audit = if level == LevelFilter::OFF { level } else { level.max(LevelFilter::INFO) };
    let ours =
        Targets::new().with_default(level).with_target("lapin", LevelFilter::OFF).with_target(AUDIT, audit);
    // An error means that logging already runs.
    let _ = match settings.text(&table::LOG_FORMAT).as_str() {
        "json" => builder.json().flatten_event(true).finish().with(ours).try_init(),
        _ => builder.finish().with(ours).try_init(),
    };
}
