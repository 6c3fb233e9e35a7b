//! Log lines: to stderr, as text or JSON, and never with a payload.
//!
//! The names and errors in a line can come from an attacker. [`LogFields`] escapes every field of every
//! line: no value can end the line, start another field or reverse the direction of the text.

use std::{
    fmt::{self, Debug},
    io::IsTerminal as _,
};

use tracing::{
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    field::RecordFields,
    filter::Targets,
    fmt::{FormatFields, format::Writer},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};
use windlass_core::text;

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
    // The client of the broker logs frames with payloads at trace, and failures that this program handles
    // and logs itself.
    // Log who changed what at every level but off: a record with gaps proves nothing.
    let audit = if level == LevelFilter::OFF { level } else { level.max(LevelFilter::INFO) };
    let ours =
        Targets::new().with_default(level).with_target("lapin", LevelFilter::OFF).with_target(AUDIT, audit);
    // An error means that logging has already been started.
    let _ = match settings.text(&table::LOG_FORMAT).as_str() {
        "json" => builder.json().flatten_event(true).finish().with(ours).try_init(),
        _ => builder.fmt_fields(LogFields).finish().with(ours).try_init(),
    };
}

/// Writes the message and then each field as `name=value`; a value is quoted if it is not one word.
struct LogFields;

impl<'writer> FormatFields<'writer> for LogFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = Fields { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Fields<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.put(field, value);
        } else {
            self.put(field, &format!("{value:?}"));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let is_told = field.name() == "message" || is_one_word(&text) || is_quoted(&text);
        if is_told { self.put(field, &text) } else { self.put(field, &format!("{text:?}")) }
    }
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: &str) {
        let gap = if std::mem::take(&mut self.is_first) { "" } else { " " };
        let value = text::shown(value);
        let written = match field.name() {
            "message" => write!(self.writer, "{gap}{value}"),
            name if self.writer.has_ansi_escapes() => {
                write!(self.writer, "{gap}\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
            }
            name => write!(self.writer, "{gap}{name}={value}"),
        };
        self.result = self.result.and(written);
    }
}

/// Whether a value needs no quotes to be told apart from the fields beside it.
fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || matches!(letter, '=' | '"'))
}

/// Whether a value is one quoted text, or a list of them.
fn is_quoted(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use windlass_core::text::is_unsafe;

    use super::*;

    /// What a log with these fields writes.
    fn logged(say: impl FnOnce()) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = tracing_subscriber::fmt()
            .with_writer(Lines(Arc::clone(&lines)))
            .without_time()
            .with_ansi(false)
            .fmt_fields(LogFields)
            .finish();
        tracing::subscriber::with_default(log, say);
        String::from_utf8(std::mem::take(&mut *lines.lock().unwrap())).unwrap()
    }

    #[derive(Clone)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl tracing_subscriber::fmt::MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn no_unsafe_character_reaches_a_line_of_the_log() {
        for letter in ('\0'..=char::MAX).filter(|letter| is_unsafe(*letter)) {
            let name = format!("a{letter}b");
            let line = logged(|| tracing::error!(token = %name, name, list = ?[&name], "said {name}"));
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert!(!text::has_unsafe(line.trim_end_matches('\n')), "{line:?}");
        }
    }

    #[test]
    fn a_value_cannot_start_another_field() {
        let forged = "ci scope=admin";
        let line = logged(
            || tracing::error!(token = %forged, name = %"ci", error = %"the \"disk\" is full", n = 3, "said"),
        );
        let told = r#"said token="ci scope=admin" name=ci error="the \"disk\" is full" n=3"#;
        assert!(line.ends_with(&format!("{told}\n")), "{line:?}");
        let line = logged(|| tracing::error!(token = %r#""a" scope="admin""#, "said"));
        assert!(line.ends_with("said token=\"\\\"a\\\" scope=\\\"admin\\\"\"\n"), "{line:?}");
    }
}
