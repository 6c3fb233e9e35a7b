//! `windlass worker`: a worker on a store, or on the server of a store, without the API.

use std::sync::Arc;

use clap::Args;
use windlass::inside::Waiting;
use windlass_core::{Error, Result};

use super::up;
use crate::{
    args::given,
    config::{Setting, setting::Raw, table},
    engine,
    failure::Exit,
    monitor::{self, Monitor},
    screen::Screen,
    session::Session,
    spans,
    store::{self, Access},
    systemd::Systemd,
};

/// Flags that every worker has. They are read as text: the table of settings checks them.
#[derive(Debug, Clone, Default, Args)]
pub struct WorkerFlags {
    /// How many tasks run at once
    #[arg(long, value_name = "N")]
    slots: Option<String>,
    /// A preset of slots: production 500, staging 60, development 10
    #[arg(long, value_name = "production|staging|development")]
    env: Option<String>,
    /// Serve only these queues
    #[arg(long, value_name = "A,B")]
    queues: Option<String>,
    /// Let http tasks reach this network although it is loopback, private or link-local; may be repeated
    #[arg(long, value_name = "CIDR")]
    allow_target: Vec<String>,
    /// How long running tasks may finish after Ctrl-C, such as 30s
    #[arg(long, value_name = "DURATION")]
    drain_timeout: Option<String>,
    /// full: acknowledged writes survive a power cut; normal: they survive a crash only
    #[arg(long, value_name = "full|normal")]
    durability: Option<String>,
    /// Whether done tasks are kept
    #[arg(long, value_name = "kept|off")]
    history: Option<String>,
    /// Send spans of tasks to this OpenTelemetry collector, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Create the schema of a PostgreSQL store, or migrate it, before starting
    #[arg(long)]
    migrate: bool,
}

impl WorkerFlags {
    /// The settings that were given.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = given([
            (&table::SLOTS, self.slots.as_ref()),
            (&table::ENV, self.env.as_ref()),
            (&table::QUEUES, self.queues.as_ref()),
            (&table::DRAIN_TIMEOUT_MS, self.drain_timeout.as_ref()),
            (&table::DURABILITY, self.durability.as_ref()),
            (&table::HISTORY, self.history.as_ref()),
            (&table::OTLP_ENDPOINT, self.otlp.as_ref()),
        ]);
        if !self.allow_target.is_empty() {
            flags.push((&table::ALLOW_TARGET, Raw::List(self.allow_target.clone())));
        }
        flags
    }

    /// Whether the start may create or migrate the store.
    pub fn access(&self) -> Access {
        if self.migrate { Access::Migrate } else { Access::Usual }
    }
}

/// Flags about which callers are allowed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Who may call")]
pub struct AccessFlags {
    /// Which callers must show a token: auto (none on loopback, all elsewhere with TLS), tokens (all),
    /// off (none)
    #[arg(long, value_name = "auto|tokens|off")]
    auth: Option<String>,
    /// Refuse every enqueue and every change, for every token
    #[arg(long)]
    read_only: bool,
    /// The server's certificate, a file in PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Its key, a file in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Accept client certificates of these authorities, a file in PEM
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<String>,
    /// Listen on an address that other machines can reach, although tokens or TLS are missing
    #[arg(long)]
    pub insecure: bool,
}

impl AccessFlags {
    /// The settings that were given.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = given([
            (&table::AUTH, self.auth.as_ref()),
            (&table::TLS_CERT, self.tls_cert.as_ref()),
            (&table::TLS_KEY, self.tls_key.as_ref()),
            (&table::TLS_CLIENT_CA, self.tls_client_ca.as_ref()),
        ]);
        if self.read_only {
            flags.push((&table::READ_ONLY, Raw::Text("on".to_owned())));
        }
        flags
    }
}

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[command(flatten)]
    worker: WorkerFlags,
    /// Answer /metrics, /healthz and /readyz here, such as 127.0.0.1:9187
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    #[command(flatten)]
    access: AccessFlags,
}

impl WorkerArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = self.worker.flags();
        flags.extend(given([(&table::METRICS_LISTEN, self.metrics_listen.as_ref())]));
        flags.extend(self.access.flags());
        flags
    }
}

/// Information about the store. A store that became unreachable after it was opened is tried until it
/// answers, like one that was unreachable from the start.
async fn introduced<T>(mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let mut waiting = Waiting::new(u64::from(std::process::id()));
    loop {
        match ask().await {
            Err(error @ Error::Unavailable(_)) => {
                waiting.pause(&error, "the store cannot be reached any more; trying until it answers").await;
            }
            told => return told,
        }
    }
}

/// Runs until it is told to stop.
pub async fn run(session: &Session, args: &WorkerArgs) -> anyhow::Result<Exit> {
    let spans = spans::exporter(&session.settings)?;
    let listener = monitor::listen(&session.settings, args.access.insecure)?;
    let store = if session.settings.is_given(&table::SERVER) {
        store::remote::open(&session.settings).await?
    } else {
        store::open(&session.settings, args.worker.access()).await?
    };
    let mut engine = engine::build(&session.settings, store.clone(), spans.clone())?;
    let monitor = listener
        .map(|(listener, doors)| Monitor::start(listener, doors, engine::operations(&engine).vitals()))
        .transpose()?;
    if monitor.is_none() {
        // Without an address no client can ask for metrics.
        engine.exposition = None;
    }
    let info = introduced(async || store.store.info().await).await?;
    let kinds = engine.kinds.clone();
    let address = monitor.as_ref().map(|monitor| monitor.address.as_str());
    let settings = &session.settings;
    let screen =
        Screen { settings, store: &info, kinds: &kinds, address: None, dashboard: None, monitor: address };
    tracing::info!(store = %info.location, slots = engine.config.slots, slots_from = %screen.slots_rule(),
        recovered = info.recovered, "started");
    let systemd = Arc::new(Systemd::from_env());
    let _watchdog = systemd.watch(engine::alive(engine::operations(&engine).vitals()))?;
    let started = engine.handle.clone();
    let watched = started.clone();
    let ended = {
        let mut running = std::pin::pin!(up::run_worker(session, engine, systemd.clone()));
        // Stdout may be closed. A service does not end because its first screen could not be printed.
        let _ = screen.show(session.out);
        tokio::select! {
            ended = &mut running => ended,
            () = started.started() => {
                systemd.ready();
                running.await
            }
        }
    };
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    spans::flush(spans.as_deref()).await;
    up::finish(session, &store.store, &watched, ended).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lost_store_is_retried_and_a_refusal_is_returned() {
        let mut answers = vec![Ok("sqlite"), Err(Error::Unavailable("gone".to_owned()))];
        let told = introduced(async || answers.pop().unwrap()).await;
        assert_eq!((told, answers.len()), (Ok("sqlite"), 0));
        let refused = introduced(async || Err::<(), _>(Error::invalid("no"))).await;
        assert_eq!(refused, Err(Error::invalid("no")));
    }
}
