//! `windlass consume`: messages of RabbitMQ become tasks of the store, or requests to an HTTP target.

mod http;
mod plan;
mod server;

use std::{sync::Arc, time::Duration};

use clap::Args;
use windlass::{Client, shutdown_signal};
use windlass_amqp::{ConsumerFigures, Running, SharedSink};

pub use self::plan::{address, section};
use self::server::Server;
use crate::{
    args::given,
    backend::{Backend as _, connect},
    config::{Setting, amqp::To, setting::Raw, table},
    failure::{Exit, Failure},
    session::Session,
    store::{self, Access},
};

/// Arguments of `consume`.
#[derive(Debug, Args)]
pub struct ConsumeArgs {
    /// The broker, such as amqp://user:password@host:5672/%2f
    #[arg(long, value_name = "URL")]
    amqp: Option<String>,
    /// How long running handlers may finish after Ctrl-C, such as 30s
    #[arg(long, value_name = "DURATION")]
    drain_timeout: Option<String>,
    /// Let http targets be in this network although it is loopback, private or link-local; may be repeated
    #[arg(long, value_name = "CIDR")]
    allow_target: Vec<String>,
}

impl ConsumeArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = given([
            (&table::AMQP_URL, self.amqp.as_ref()),
            (&table::DRAIN_TIMEOUT_MS, self.drain_timeout.as_ref()),
        ]);
        if !self.allow_target.is_empty() {
            flags.push((&table::ALLOW_TARGET, Raw::List(self.allow_target.clone())));
        }
        flags
    }
}

/// Consumes until it is told to stop.
pub async fn run(session: &Session) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let (url, section) = (address(settings)?, section(settings)?);
    if section.consumers.is_empty() {
        return Err(Failure::usage("nothing to consume: the file has no [[amqp.consumer]]")
            .hint("docs/guides/consume.toml is an example")
            .into());
    }
    // Before anybody can send a signal because the first line is there.
    let mut signals = shutdown_signal();
    let needs_store = section.consumers.iter().any(|consumer| consumer.to == To::Store);
    // As for every command: the server that was named, else the one that has the store, else the store itself.
    let server = if needs_store { connect::find_server(settings).await? } else { None };
    let store = match &server {
        None if needs_store => Some(store::open(settings, Access::Usual).await?),
        _ => None,
    };
    let sink: Option<SharedSink> = match (server, &store) {
        (Some(server), _) => {
            session.out.note(format!("tasks go to the server at {}", server.place()));
            Some(Arc::new(Server::new(server)))
        }
        (None, Some(store)) => Some(Arc::new(Client::new(store.store.clone()))),
        (None, None) => None,
    };
    let consumers = plan::consumers(settings, &url, section, sink.as_ref())?;
    let running = consumers.start().await.map_err(|error| plan::failure(&error))?;
    announce(session, &running);
    let fatal = async {
        match &store {
            Some(store) => store.fatal().await,
            None => std::future::pending().await,
        }
    };
    let failed = tokio::select! {
        () = signals.next() => None,
        reason = fatal => Some(reason),
    };
    let limit = settings.duration(&table::DRAIN_TIMEOUT_MS);
    let figures = stop(session, running, &mut signals, limit).await;
    if let Some(store) = store {
        // A store that does not close has lost nothing either.
        let _ = tokio::time::timeout(Duration::from_secs(5), store.store.close()).await;
    }
    if let Some(reason) = failed {
        return Err(Failure::new(Exit::Failed, format!("stopped: {reason}"))
            .hint("what was not acknowledged is with the broker; check the disk and start again")
            .into());
    }
    session.out.note(format!("stopped: {figures}"));
    Ok(Exit::Done)
}

fn announce(session: &Session, running: &Running) {
    for consumer in running.figures() {
        let ConsumerFigures { queue, workers, prefetch, event_type, .. } = consumer;
        let of = if event_type.is_empty() { String::new() } else { format!(" · {event_type}") };
        session.out.note(format!("consuming {queue}{of} · {workers} workers · prefetch {prefetch}"));
    }
}

/// Drains; a second signal hands back at once.
async fn stop(
    session: &Session,
    running: Running,
    signals: &mut windlass::Signals,
    limit: Duration,
) -> String {
    let handle = running.handle();
    let before = Sum::of(&handle.figures());
    let shown = windlass_core::why::human(limit).replace(".0 s", " s");
    session.out.note(format!(
        "draining: {} running, up to {shown} (Ctrl-C again to hand them back now)",
        before.running
    ));
    let mut stopping = std::pin::pin!(running.stop(limit));
    tokio::select! {
        _ = &mut stopping => {}
        () = signals.next() => {
            handle.hurry().await;
            stopping.await;
        }
    }
    let after = Sum::of(&handle.figures());
    let (finished, handed_back) = (after.finished - before.finished, after.handed_back - before.handed_back);
    format!("{finished} finished, {handed_back} handed back, 0 lost")
}

/// The figures of all consumers.
struct Sum {
    running: u64,
    /// Answered for good, one way or the other.
    finished: u64,
    handed_back: u64,
}

impl Sum {
    fn of(figures: &[ConsumerFigures]) -> Self {
        let sum = |figure: fn(&ConsumerFigures) -> u64| figures.iter().map(figure).sum();
        Self {
            running: sum(|one| one.running),
            finished: sum(|one| one.acked + one.rejected),
            handed_back: sum(|one| one.requeued),
        }
    }
}
