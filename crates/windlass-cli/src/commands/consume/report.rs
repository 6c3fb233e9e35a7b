//! Tells a server what the consumers of this process do, so that its pages show them.

use std::{convert::Infallible, time::Duration};

use windlass_amqp::{ConsumerFigures, Handle, State};
use windlass_server::api::{ConsumerReport, ConsumerState, ConsumerView};

use crate::{
    backend::{connect::Choice, remote::Remote},
    config::Settings,
    duration::now,
    version,
};

/// How often.
const EVERY: Duration = Duration::from_secs(5);
/// How often a process without a server looks for one.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Consumers of one report; the server takes no more.
const CONSUMERS_MAX: usize = 200;
/// Characters of the host's name in the name of the process.
const HOST_CHARS: usize = 30;
/// How long the last report may take.
const LAST_MAX: Duration = Duration::from_secs(1);

/// Reports about this process.
pub struct Reporter {
    /// A name that no other process has.
    process: String,
    server: Option<Remote>,
}

impl Reporter {
    /// Reports to this server, or to one that is found later.
    pub fn new(server: Option<Remote>) -> Self {
        let host: String = host_name().chars().take(HOST_CHARS).collect();
        // Process numbers come again, in containers above all, and hosts may have one name.
        Self { process: format!("{host}-{}-{}", std::process::id(), now().as_ms()), server }
    }

    /// Reports again and again. A failure is not one of the process: it goes on consuming.
    pub async fn run(&mut self, settings: &Settings, consumers: &Handle) -> Infallible {
        loop {
            if self.server.is_none() {
                self.server = find(settings).await;
            }
            let Some(server) = &self.server else {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            };
            if let Err(error) = server.report_consumers(&self.report(&consumers.figures())).await {
                tracing::debug!(%error, "the server did not take the figures of the consumers");
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Says that this process has stopped.
    pub async fn stopped(&self) {
        if let Some(server) = &self.server {
            // Without this report the server shows the process as one that it has not heard of.
            let _ = tokio::time::timeout(LAST_MAX, server.report_consumers(&self.report(&[]))).await;
        }
    }

    fn report(&self, figures: &[ConsumerFigures]) -> ConsumerReport {
        ConsumerReport {
            process: self.process.clone(),
            host: host_name(),
            pid: std::process::id(),
            version: version::VERSION.to_owned(),
            consumers: figures.iter().take(CONSUMERS_MAX).map(view).collect(),
        }
    }
}

async fn find(settings: &Settings) -> Option<Remote> {
    Choice::of(settings).ok()?.server_to_watch(settings).await.ok().flatten()
}

fn view(figures: &ConsumerFigures) -> ConsumerView {
    ConsumerView {
        queue: figures.queue.clone(),
        event_type: figures.event_type.clone(),
        state: match figures.state {
            State::Consuming => ConsumerState::Consuming,
            State::Reconnecting => ConsumerState::Reconnecting,
            State::Stopping => ConsumerState::Stopping,
        },
        busy: figures.running,
        allowed: figures.limit,
        workers: figures.workers as u64,
        prefetch: u64::from(figures.prefetch_in_force),
        queue_messages: figures.queue_messages,
        deliveries: figures.deliveries,
        redeliveries: figures.redeliveries,
        acked: figures.acked,
        rejected: figures.rejected,
        requeued: figures.requeued,
        unanswered: figures.unanswered,
        reconnects: figures.sessions.saturating_sub(1),
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}
