//! The lists of the file as declarations and consumers.

use std::sync::Arc;

use windlass::telemetry::OutcomeTimes;
use windlass_amqp::{
    Binding, Bridge, Consumer, Consumers, Error, Exchange, ExchangeKind, NameFrom, Queue, SharedSink,
};
use windlass_kinds::Http;

use super::http::Target;
use crate::{
    config::{
        Settings,
        amqp::{self, Section, To},
        table,
    },
    duration, engine,
    failure::{Exit, Failure},
};

/// The broker's address.
pub fn address(settings: &Settings) -> Result<String, Failure> {
    let url = settings.text(&table::AMQP_URL);
    if url.is_empty() {
        return Err(Failure::usage("no broker is named")
            .hint("set amqp.url in the file, WINDLASS_AMQP_URL or --amqp"));
    }
    Ok(url)
}

/// The lists of the file in force.
pub fn section(settings: &Settings) -> Result<Section, Failure> {
    amqp::read(settings.file.as_deref())
}

/// Everything that the file asks for. `sink` is there if any consumer needs the store.
pub fn consumers(
    settings: &Settings,
    url: &str,
    section: Section,
    sink: Option<&SharedSink>,
    times: &Arc<OutcomeTimes>,
) -> anyhow::Result<Consumers> {
    let mut consumers = declared(url, &section);
    // One client for all of them, with one pool of connections.
    let http = Http::new(engine::http_options(settings, Some(times))?);
    let http = Arc::new(http.map_err(|error| Failure::usage(error.to_string()))?);
    for entry in section.consumers {
        let consumer = match (entry.to, sink) {
            (To::Store, Some(sink)) => Consumer::into_store(&entry.queue, bridge(&entry, sink)?),
            // Not reached: the caller has opened the store.
            (To::Store, None) => continue,
            (To::Http, _) => Target::new(Arc::clone(&http), &entry)?.consumer(),
        };
        consumers = consumers.consume(with_options(consumer, &entry)?);
    }
    Ok(consumers)
}

/// What the file declares at the broker, without consumers.
pub fn declared(url: &str, section: &Section) -> Consumers {
    let mut consumers = Consumers::connect(url);
    for exchange in &section.exchanges {
        let kind = match exchange.kind {
            amqp::ExchangeKind::Direct => ExchangeKind::Direct,
            amqp::ExchangeKind::Fanout => ExchangeKind::Fanout,
            amqp::ExchangeKind::Topic => ExchangeKind::Topic,
            amqp::ExchangeKind::Headers => ExchangeKind::Headers,
        };
        let declared = Exchange::new(&exchange.name, kind);
        consumers = consumers.exchange(if exchange.transient { declared.transient() } else { declared });
    }
    for queue in &section.queues {
        let mut declared = match queue.kind {
            amqp::QueueKind::Classic => Queue::durable(&queue.name),
            amqp::QueueKind::Quorum => Queue::quorum(&queue.name),
        };
        if queue.dead_letters {
            declared = declared.with_dead_letters();
        }
        if let Some(limit) = queue.delivery_limit {
            declared = declared.delivery_limit(limit);
        }
        consumers = consumers.queue(declared);
    }
    for binding in &section.bindings {
        consumers = consumers.bind(Binding::new(&binding.exchange, &binding.queue, &binding.routing_key));
    }
    consumers
}

fn bridge(entry: &amqp::Consumer, sink: &SharedSink) -> Result<Bridge, Failure> {
    let kind = entry.kind.as_deref().ok_or_else(|| wrong(entry, "goes to the store and names no kind"))?;
    if entry.url.is_some() || !entry.headers.is_empty() {
        return Err(wrong(entry, "goes to the store: url and headers are for to = \"http\""));
    }
    let mut bridge = Bridge::new(Arc::clone(sink), kind).map_err(|error| failure(&error))?;
    if let Some(queue) = &entry.task_queue {
        bridge = bridge.task_queue(queue).map_err(|error| failure(&error))?;
    }
    let from = |text: &Option<String>| -> Result<Option<NameFrom>, Failure> {
        text.as_deref().map(str::parse).transpose().map_err(|error| failure(&error))
    };
    if let Some(job) = from(&entry.job)? {
        bridge = bridge.job(job);
    }
    if let Some(workflow) = from(&entry.workflow)? {
        bridge = bridge.workflow(workflow);
    }
    Ok(bridge)
}

fn with_options(consumer: Consumer, entry: &amqp::Consumer) -> Result<Consumer, Failure> {
    let mut consumer = consumer.workers(entry.workers).prefetch(entry.prefetch).redeliver(entry.redeliver);
    if let Some(tag) = &entry.tag {
        consumer = consumer.tag(tag);
    }
    if let Some(event_type) = &entry.event_type {
        consumer = consumer.event_type(event_type);
    }
    if entry.strict_event_type {
        consumer = consumer.strict_event_type();
    }
    if let Some(min) = entry.min_workers {
        consumer = consumer.adaptive(min);
    }
    if entry.exclusive {
        consumer = consumer.exclusive();
    }
    if entry.single_active {
        consumer = consumer.single_active();
    }
    if let Some(text) = &entry.timeout {
        let timeout = duration::parse(text).map_err(|reason| wrong(entry, &format!("timeout {reason}")))?;
        consumer = consumer.timeout(timeout);
    }
    Ok(consumer)
}

/// The failure for a consumer in the file that is not valid.
pub fn wrong(entry: &amqp::Consumer, what: &str) -> Failure {
    Failure::usage(format!("the consumer of queue {:?} {what}", entry.queue))
}

/// Turns an error of the broker into the program's failure.
pub fn failure(error: &Error) -> Failure {
    let exit = match error {
        Error::Address(_) | Error::Tls(_) | Error::Declaration(_) => Exit::Usage,
        Error::Unreachable { .. } => Exit::Unreachable,
        Error::Refused { .. } => Exit::Refused,
        _ => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}

#[cfg(test)]
mod tests {
    use windlass::Client;

    use super::*;
    use crate::config::{Sources, load};

    const EXAMPLE: &str = include_str!("../../../../../docs/guides/consume.toml");

    async fn planned(text: &str) -> anyhow::Result<String> {
        let sink: SharedSink = Arc::new(Client::new(windlass::open("sqlite::memory:").await?));
        let settings = load(&Sources::default())?;
        let section = amqp::parse(text).map_err(anyhow::Error::msg)?;
        Ok(format!("{:?}", consumers(&settings, "amqp://127.0.0.1", section, Some(&sink), &Arc::default())?))
    }

    #[tokio::test]
    async fn example_file_is_valid_and_shows_three_consumers() {
        crate::config::file::parse(EXAMPLE).unwrap();
        let section = amqp::parse(EXAMPLE).unwrap();
        let sizes: Vec<_> = section.consumers.iter().map(|one| (one.workers, one.prefetch)).collect();
        assert_eq!(sizes, [(0, 0), (1, 0), (100, 500)]);
        let shown = planned(EXAMPLE).await.unwrap();
        assert!(
            ["orders", "account.events", "batch.import"].iter().all(|queue| shown.contains(queue)),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn an_invalid_consumer_is_refused_with_its_queue() {
        let head = "[[amqp.consumer]]\nqueue = \"q\"\n";
        for (rest, part) in [
            ("to = \"store\"", "names no kind"),
            ("to = \"store\"\nkind = \"k\"\nurl = \"http://x\"", "url and headers"),
            ("to = \"store\"\nkind = \"k\"\njob = \"tenant\"", "header:NAME"),
            ("to = \"http\"", "names no url"),
            ("to = \"http\"\nurl = \"ftp://x\"", "url"),
            ("to = \"http\"\nurl = \"http://x\"\nkind = \"k\"", "kind"),
            ("to = \"store\"\nkind = \"k\"\ntimeout = \"soon\"", "timeout"),
        ] {
            let problem = planned(&format!("{head}{rest}\n")).await.unwrap_err().to_string();
            assert!(problem.contains(part), "{rest}: {problem}");
        }
    }
}
