//! Checks the broker that `windlass consume` would use and its queues, and says how large a pool its
//! handlers need if they share one.

use std::collections::BTreeSet;

use windlass_amqp::{SharedPool, cpus, inspect, shared_pool, sizes};

use super::{Level, Report};
use crate::{
    config::{Settings, amqp, table},
    store,
};

/// Whether a broker is set and there is no store yet. The broker is then checked alone.
pub(super) fn is_all_there_is(settings: &Settings) -> anyhow::Result<bool> {
    let has_broker = !settings.text(&table::AMQP_URL).is_empty();
    Ok(has_broker && store::path(settings)?.is_some_and(|path| !path.exists()))
}

/// Checks the broker, if one is set.
pub(super) async fn checks(report: &mut Report, settings: &Settings) -> anyhow::Result<()> {
    let (url, section) = (settings.text(&table::AMQP_URL), amqp::read(settings.file.as_deref())?);
    if url.is_empty() {
        return Ok(());
    }
    let mut workers = 0;
    for consumer in &section.consumers {
        match sizes(consumer.workers, consumer.prefetch, cpus()) {
            Ok(sizes) => workers += sizes.workers,
            Err(error) => {
                report.add("consumer", Level::Wrong, format!("queue {:?}: {error}", consumer.queue));
            }
        }
    }
    let queues: BTreeSet<String> = section.consumers.iter().map(|consumer| consumer.queue.clone()).collect();
    let declared: BTreeSet<&str> = section.queues.iter().map(|queue| queue.name.as_str()).collect();
    let queues: Vec<String> = queues.into_iter().collect();
    match inspect(&url, &queues).await {
        Err(error) => report.add("broker", Level::Wrong, error.to_string()),
        Ok(figures) => {
            report.add("broker", Level::Ok, store::redacted(&url));
            for queue in figures {
                let name = &queue.name;
                match queue.found {
                    Some((messages, consumers)) => {
                        let detail = format!("{name}: {messages} messages wait, {consumers} consumers");
                        report.add("amqp queue", Level::Ok, detail);
                    }
                    None if declared.contains(name.as_str()) => {
                        report.add(
                            "amqp queue",
                            Level::Note,
                            format!("{name}: not there yet; `windlass consume` makes it"),
                        );
                    }
                    None => {
                        let detail = format!("{name}: not there, and no [[amqp.queue]] declares it");
                        report.add("amqp queue", Level::Wrong, detail);
                    }
                }
            }
        }
    }
    if workers > 0 {
        let SharedPool { max, idle } = shared_pool(workers);
        let detail = format!(
            "{workers} workers: a pool that their handlers share needs {max} places, {idle} of them idle"
        );
        report.add("amqp pool", Level::Ok, detail);
    }
    Ok(())
}
