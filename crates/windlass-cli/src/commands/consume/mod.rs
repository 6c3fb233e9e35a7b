//! `windlass consume`: messages of RabbitMQ become tasks of the store, or requests to an HTTP target.

mod http;
mod plan;
mod report;
mod server;
mod watch;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use clap::Args;
use windlass::{Client, admission::Controller, shutdown_signal, telemetry::Exposition, trace::Tracer};
use windlass_amqp::{ConsumerFigures, Consumers, Running, SharedSink};
use windlass_otlp::Exporter;

pub use self::plan::{address, section};
use self::{report::Reporter, server::Server};
use super::up;
use crate::{
    args::given,
    backend::{Backend as _, connect::Choice, remote::Remote},
    config::{
        Setting,
        amqp::{Section, To},
        setting::Raw,
        table,
    },
    engine,
    failure::{Exit, Failure},
    monitor::{self, Monitor},
    session::Session,
    spans,
    store::{self, Access, Opened},
    systemd::Systemd,
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
    /// Send spans of messages to this OpenTelemetry collector, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Answer /metrics, /healthz and /readyz here, such as 127.0.0.1:9187
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    /// Answer them on an address that other machines can reach, although there is no authentication and
    /// no TLS
    #[arg(long)]
    insecure: bool,
}

impl ConsumeArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = given([
            (&table::AMQP_URL, self.amqp.as_ref()),
            (&table::DRAIN_TIMEOUT_MS, self.drain_timeout.as_ref()),
            (&table::OTLP_ENDPOINT, self.otlp.as_ref()),
            (&table::METRICS_LISTEN, self.metrics_listen.as_ref()),
        ]);
        if !self.allow_target.is_empty() {
            flags.push((&table::ALLOW_TARGET, Raw::List(self.allow_target.clone())));
        }
        flags
    }
}

/// Consumes until it is told to stop.
pub async fn run(session: &Session, args: &ConsumeArgs) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let (url, section) = (address(settings)?, section(settings)?);
    if section.consumers.is_empty() {
        return Err(Failure::usage("nothing to consume: the file has no [[amqp.consumer]]")
            .hint("docs/guides/consume.toml is an example")
            .into());
    }
    let listener = monitor::listen(settings, args.insecure)?;
    // Listen for signals before the first line is printed: a reader of that line may send one at once.
    let mut signals = shutdown_signal();
    let consuming = Consuming::start(session, &url, section).await?;
    let draining = Arc::new(AtomicBool::new(false));
    let vitals = consuming.vitals(&draining);
    let monitor =
        listener.map(|(listener, doors)| Monitor::start(listener, doors, vitals.clone())).transpose()?;
    let systemd = Systemd::from_env();
    let _watchdog = systemd.watch(engine::alive(vitals))?;
    announce(session, &consuming.running, monitor.as_ref());
    systemd.ready();
    // Without an address no client can ask for metrics.
    let exposition = consuming.exposition.clone().filter(|_| monitor.is_some());
    let (mut reporter, handle) = (Reporter::new(consuming.server.clone()), consuming.running.handle());
    let failed = tokio::select! {
        () = signals.next() => None,
        reason = fatal(consuming.store.as_ref()) => Some(reason),
        never = up::watch_store(exposition) => match never {},
        never = reporter.run(settings, &handle) => match never {},
    };
    systemd.stopping();
    draining.store(true, Ordering::Relaxed);
    let limit = settings.duration(&table::DRAIN_TIMEOUT_MS);
    let Consuming { running, store, spans, .. } = consuming;
    let figures = stop(session, running, &mut signals, limit).await;
    reporter.stopped().await;
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    spans::flush(spans.as_deref()).await;
    if let Some(store) = store {
        // Ignore a store that does not close in time: everything acknowledged is already written.
        let _ = tokio::time::timeout(Duration::from_secs(5), store.store.close()).await;
    }
    if let Some(reason) = failed {
        return Err(Failure::new(Exit::Failed, format!("stopped: {reason}"))
            .hint("the broker still has every message that was not acknowledged; check the disk and start again")
            .into());
    }
    session.out.note(format!("stopped: {figures}"));
    Ok(Exit::Done)
}

/// Running consumers, and what they need.
struct Consuming {
    running: Running,
    /// The server that takes the tasks.
    server: Option<Remote>,
    store: Option<Opened>,
    exposition: Option<Exposition>,
    spans: Option<Arc<Exporter>>,
}

impl Consuming {
    async fn start(session: &Session, url: &str, section: Section) -> anyhow::Result<Self> {
        let settings = &session.settings;
        let spans = spans::exporter(settings)?;
        let needs_store = section.consumers.iter().any(|consumer| consumer.to == To::Store);
        // As for every command: the server that was named, else the one that runs on the store, else the
        // store itself.
        let server = if needs_store { Choice::of(settings)?.server(settings).await? } else { None };
        let store = match &server {
            None if needs_store => Some(store::open(settings, Access::Usual).await?),
            _ => None,
        };
        let tracer = spans.clone().map(|spans| Tracer::new(spans));
        let sink: Option<SharedSink> = match (server.clone(), &store) {
            (Some(server), _) => {
                session.out.note(format!("tasks go to the server at {}", server.target().await));
                Some(Arc::new(Server::new(server)))
            }
            (None, Some(store)) => {
                let client = Client::new(store.store.clone());
                Some(Arc::new(tracer.iter().fold(client, |client, tracer| client.tracer(tracer.clone()))))
            }
            (None, None) => None,
        };
        let times = Arc::default();
        let consumers = plan::consumers(settings, url, section, sink.as_ref(), &times)?;
        let consumers =
            tracer.iter().fold(consumers, |consumers: Consumers, tracer| consumers.tracer(tracer.clone()));
        let consumers = consumers.admission(Controller::new(settings.admission())?);
        let running = consumers.start().await.map_err(|error| plan::failure(&error))?;
        let shared = store.as_ref().map(|store| store.store.clone());
        let exposition = watch::exposition(settings, &running, shared, (times, tracer));
        Ok(Self { running, server, store, exposition, spans })
    }

    fn vitals(&self, draining: &Arc<AtomicBool>) -> windlass_server::Vitals {
        let store = self.store.as_ref().map(|store| store.store.clone());
        watch::vitals(self.running.handle(), store, self.exposition.clone(), Arc::clone(draining))
    }
}

/// Resolves with the reason once the store has failed for good.
async fn fatal(store: Option<&Opened>) -> String {
    match store {
        Some(store) => store.fatal().await,
        None => std::future::pending().await,
    }
}

fn announce(session: &Session, running: &Running, monitor: Option<&Monitor>) {
    if let Some(monitor) = monitor {
        session.out.note(format!("metrics at {}/metrics", monitor.address));
    }
    for consumer in running.figures() {
        let ConsumerFigures { queue, workers, prefetch, event_type, .. } = consumer;
        let of = if event_type.is_empty() { String::new() } else { format!(" · {event_type}") };
        session.out.note(format!("consuming {queue}{of} · {workers} workers · prefetch {prefetch}"));
    }
}

/// Drains; on a second signal it hands the rest back at once.
async fn stop(
    session: &Session,
    running: Running,
    signals: &mut windlass::lifecycle::Signals,
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
    /// Messages with a final answer: acknowledged or rejected.
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
