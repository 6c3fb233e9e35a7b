//! `windlass up`: store, worker and API in one process.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tokio::sync::oneshot;
use windlass::{
    WorkerError,
    telemetry::Exposition,
    worker::{DrainReport, WorkerHandle},
};
use windlass_core::store::SharedStore;
use windlass_server::{Operations, access::Auth, http};

use super::worker::{AccessFlags, WorkerFlags};
use crate::{
    access::{self, Doors, Reserved},
    backend::{Backend as _, connect},
    config::{Setting, Settings, setting::Raw, table},
    engine::{self, Engine},
    failure::{Exit, Failure},
    screen::Screen,
    session::Session,
    spans,
    stop::{self, Announced},
    store,
    systemd::Systemd,
};

/// How long the store may take at the end to write what it has accepted.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    #[command(flatten)]
    worker: WorkerFlags,
    /// Where to listen, such as 127.0.0.1:7878
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Serve no pages: the API alone
    #[arg(long, conflicts_with = "dashboard_listen")]
    no_dashboard: bool,
    /// Serve the pages here and not beside the API, such as 127.0.0.1:7879
    #[arg(long, value_name = "ADDR")]
    dashboard_listen: Option<String>,
    /// The address at which browsers reach this server, such as <https://ops.example.com/windlass>
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    #[command(flatten)]
    access: AccessFlags,
}

impl UpArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        let mut flags = self.worker.flags();
        flags.extend(crate::args::given([
            (&table::LISTEN, self.listen.as_ref()),
            (&table::DASHBOARD_LISTEN, self.dashboard_listen.as_ref()),
            (&table::PUBLIC_URL, self.public_url.as_ref()),
        ]));
        if self.no_dashboard {
            flags.push((&table::DASHBOARD, Raw::Text("off".to_owned())));
        }
        flags.extend(self.access.flags());
        flags
    }
}

/// Runs until it is told to stop.
pub async fn run(session: &Session, args: &UpArgs) -> anyhow::Result<Exit> {
    let settings = &session.settings;
    let mut doors = Doors::from_settings(settings, &table::LISTEN, args.access.insecure)?;
    let pages = doors.of_pages(settings, args.access.insecure)?;
    // Check first what can be refused without a store: a start that is refused must leave no file behind.
    let spans = spans::exporter(settings)?;
    let socket = match Reserved::at(doors.listen, "--listen") {
        Ok(socket) => socket,
        Err(failure) => return Err(taken(settings, failure).await.into()),
    };
    let pages_socket =
        pages.as_ref().map(|pages| Reserved::at(pages.listen, "--dashboard-listen")).transpose()?;
    // In dependency order: store, listener, worker, API. A failure closes what was opened before it.
    let store = store::open(settings, args.worker.access()).await?;
    let listening =
        socket.listen().and_then(|api| Ok((api, pages_socket.map(Reserved::listen).transpose()?)));
    let (listener, pages_listener) = match listening {
        Ok(listeners) => listeners,
        Err(failure) => {
            store.store.close().await?;
            return Err(failure.into());
        }
    };
    let address = format!("{}://{}", doors.scheme(), listener.local_addr()?);
    let dashboard = match (&pages_listener, doors.options.routes) {
        (_, http::Routes::WithoutPages) => None,
        (Some(pages), _) => Some(format!("{}://{}", doors.scheme(), pages.local_addr()?)),
        (None, _) => Some(address.clone()),
    };
    store.set_address(&address);
    let engine = engine::build(settings, store.clone(), spans.clone())?;
    let info = store.store.info().await?;
    let kinds = engine.kinds.clone();
    let dashboard = dashboard.as_deref();
    let screen =
        Screen { settings, store: &info, kinds: &kinds, address: Some(&address), dashboard, monitor: None };
    tracing::info!(%address, store = %info.location, slots = engine.config.slots, slots_from = %screen.slots_rule(),
        recovered = info.recovered, access = ?doors.options.access.auth, "started");

    let systemd = Arc::new(Systemd::from_env());
    let operations = engine::operations(&engine);
    let _watchdog = systemd.watch(engine::alive(operations.vitals()))?;
    let (stop_api, api_stopped) = oneshot::channel::<()>();
    warn_of_no_tokens(session, &doors, &store.store).await?;
    let tls = doors.options.tls.clone();
    let watched_by_api = operations.clone();
    let api = http::Place { listener, options: doors.options };
    let pages =
        pages_listener.zip(pages).map(|(listener, doors)| http::Place { listener, options: doors.options });
    let api = tokio::spawn(serve(api, pages, operations, api_stopped));
    // Print the address last: a program that reads it may at once send a signal or a task. So listen for
    // signals and start the worker first.
    let started = engine.handle.clone();
    let watched = started.clone();
    let ended = {
        let mut running = std::pin::pin!(async {
            tokio::select! {
                ended = run_worker(session, engine, systemd.clone()) => ended,
                never = access::keep_fresh(tls) => match never {},
                never = watched_by_api.keep_history() => match never {},
            }
        });
        tokio::select! {
            ended = &mut running => ended,
            () = started.started() => {
                // Stdout may be closed. A service does not end because its first screen could not be
                // printed.
                let _ = screen.show(session.out);
                systemd.ready();
                running.await
            }
        }
    };
    // The API outlives the worker, so that `/readyz` can answer "draining" and clients can still fetch
    // results.
    let _ = stop_api.send(());
    let _ = api.await;
    spans::flush(spans.as_deref()).await;
    finish(session, &store.store, &watched, ended).await
}

/// Warns if the server requires tokens and has none: every call would be refused.
async fn warn_of_no_tokens(session: &Session, doors: &Doors, store: &SharedStore) -> anyhow::Result<()> {
    let certificates = !session.settings.text(&table::TLS_CLIENT_CA).is_empty();
    if doors.options.access.auth == Auth::Tokens && !certificates && store.tokens().list().await?.is_empty() {
        session.out.warn(
            "every call needs a token and there is none; stop, make one with `windlass token create --scope admin` on the \
             same store, and start again",
        );
    }
    Ok(())
}

/// Serves the API, and the pages beside it or at an address of their own.
async fn serve(
    api: http::Place,
    pages: Option<http::Place>,
    operations: Operations,
    stopped: oneshot::Receiver<()>,
) -> std::io::Result<()> {
    let stopped = async {
        // A dropped sender also stops the server.
        let _ = stopped.await;
    };
    match pages {
        Some(pages) => http::serve_apart(api, pages, operations, stopped).await,
        None => http::serve(api.listener, operations, api.options, stopped).await,
    }
}

/// If the address is taken by the server of this very store, says so.
async fn taken(settings: &Settings, failure: Failure) -> Failure {
    let Ok(Some(path)) = store::path(settings) else { return failure };
    match connect::server_on(&path, settings).await {
        Ok(Some(server)) => store::sqlite::failure(windlass_sqlite::OpenError::InUse {
            pid: connect::owner_pid(&path),
            path,
            address: Some(server.place()),
        }),
        _ => failure,
    }
}

/// Listens for signals at once. Runs the worker until a signal comes or the store fails.
pub fn run_worker(
    session: &Session,
    engine: Engine,
    systemd: Arc<Systemd>,
) -> impl Future<Output = Result<DrainReport, WorkerError>> + use<> {
    let shutdown = Announced::new(engine.handle.clone(), engine.config.drain_timeout, session.out, systemd);
    let (store, exposition) = (engine.store.clone(), engine.exposition.clone());
    async move {
        let watching = watch_store(exposition);
        tokio::select! {
            never = watching => match never {},
            ended = engine.worker.run(shutdown) => ended,
            reason = store.fatal() => Err(WorkerError::Store(windlass_core::Error::Fatal(reason))),
        }
    }
}

/// Watches the store for the metrics until the caller drops this future.
pub async fn watch_store(exposition: Option<Exposition>) -> std::convert::Infallible {
    match exposition {
        Some(exposition) => exposition.watch_store().await,
        None => std::future::pending().await,
    }
}

/// Closes the store and prints how the worker ended.
pub async fn finish(
    session: &Session,
    store: &SharedStore,
    worker: &WorkerHandle,
    ended: Result<DrainReport, WorkerError>,
) -> anyhow::Result<Exit> {
    let closed = tokio::time::timeout(CLOSE_TIMEOUT, store.close()).await;
    match ended {
        Ok(report) => {
            match closed {
                Ok(Ok(())) => {}
                Ok(Err(error)) => session.out.warn(format!("the store did not close cleanly: {error}")),
                Err(_) => session.out.warn("the store did not close in time"),
            }
            let status = worker.status();
            session.out.note(stop::stopped(status.ended.saturating_sub(status.handed_back), &report));
            Ok(Exit::Done)
        }
        Err(WorkerError::Store(error)) => Err(Failure::new(Exit::Failed, format!("stopped: {error}"))
            .hint("nothing that was acknowledged is lost; check the disk and start again")
            .into()),
        Err(error) => Err(Failure::new(Exit::Failed, format!("stopped: {error}"))
            .hint("the claimed tasks were handed back; --log-level info logs more about the cause")
            .into()),
    }
}
