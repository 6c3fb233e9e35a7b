//! The lists below `[amqp]`: what `windlass consume` declares and consumes. They are lists of tables, so
//! only the file can hold them.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use crate::failure::Failure;

/// The keys that are lists of tables.
pub const LISTS: [&str; 4] = ["amqp.exchange", "amqp.queue", "amqp.binding", "amqp.consumer"];

/// What stands below `[amqp]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// A setting of its own: see the table of settings.
    #[serde(rename = "url")]
    _url: Option<String>,
    #[serde(default, rename = "exchange")]
    pub exchanges: Vec<Exchange>,
    #[serde(default, rename = "queue")]
    pub queues: Vec<Queue>,
    #[serde(default, rename = "binding")]
    pub bindings: Vec<Binding>,
    #[serde(default, rename = "consumer")]
    pub consumers: Vec<Consumer>,
}

/// An exchange.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub name: String,
    pub kind: ExchangeKind,
    #[serde(default)]
    pub transient: bool,
}

/// How an exchange chooses queues.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeKind {
    Direct,
    Fanout,
    Topic,
    Headers,
}

/// A queue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub name: String,
    #[serde(default)]
    pub kind: QueueKind,
    #[serde(default)]
    pub dead_letters: bool,
    pub delivery_limit: Option<u32>,
}

/// How the broker keeps a queue.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    #[default]
    Classic,
    Quorum,
}

/// A binding.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    pub exchange: String,
    pub queue: String,
    #[serde(default)]
    pub routing_key: String,
}

/// A consumer. Where its deliveries go decides which of the last fields it has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    pub queue: String,
    pub tag: Option<String>,
    pub event_type: Option<String>,
    #[serde(default)]
    pub strict_event_type: bool,
    #[serde(default)]
    pub workers: i64,
    #[serde(default)]
    pub prefetch: i64,
    pub min_workers: Option<i64>,
    #[serde(default)]
    pub exclusive: bool,
    #[serde(default)]
    pub single_active: bool,
    pub timeout: Option<String>,
    #[serde(default)]
    pub redeliver: u32,
    pub to: To,
    pub kind: Option<String>,
    pub task_queue: Option<String>,
    pub job: Option<String>,
    pub workflow: Option<String>,
    pub url: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, serde_json::Value>,
}

/// Where deliveries go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    Store,
    Http,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    amqp: Section,
}

/// Reads the lists of a file. Without a file all lists are empty.
///
/// # Errors
/// What is wrong, with its line.
pub fn read(path: Option<&Path>) -> Result<Section, Failure> {
    let Some(path) = path else { return Ok(Section::default()) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    parse(&text).map_err(|problem| Failure::usage(format!("{}, {problem}", path.display())))
}

/// Reads the lists of a file's text.
pub fn parse(text: &str) -> Result<Section, String> {
    let document: Document = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
        format!("line {line}: {}", error.message().lines().next().unwrap_or("not TOML"))
    })?;
    Ok(document.amqp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_of_a_list_are_refused_with_their_line() {
        let problem = parse("slots = 5\n[[amqp.queue]]\nname = \"a\"\ndurable = true\n").unwrap_err();
        assert!(problem.starts_with("line 4: ") && problem.contains("durable"), "{problem}");
        assert!(
            parse("[[amqp.consumer]]\nqueue = \"a\"\nto = \"nowhere\"\n").unwrap_err().contains("nowhere")
        );
    }

    #[test]
    fn a_file_without_lists_has_none() {
        let section = parse("slots = 5\n[amqp]\nurl = \"amqp://x\"\n").unwrap();
        assert!(section.consumers.is_empty() && section.queues.is_empty());
    }
}
