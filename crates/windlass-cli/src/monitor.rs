//! The address where a process without the API answers a monitor: `/metrics`, `/healthz`, `/readyz`.

use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use windlass_server::{Vitals, http};

use crate::{
    access::{self, Doors, Reserved},
    config::{Settings, table},
};

/// An open address for a monitor.
pub struct Monitor {
    /// Where it is, such as `http://127.0.0.1:9187`.
    pub address: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

/// Opens the address that the settings name, if they name one.
pub fn listen(settings: &Settings, insecure: bool) -> anyhow::Result<Option<(TcpListener, Doors)>> {
    if settings.text(&table::METRICS_LISTEN).is_empty() {
        return Ok(None);
    }
    let doors = Doors::from_settings(settings, &table::METRICS_LISTEN, insecure)?;
    Ok(Some((Reserved::at(doors.listen, "--metrics-listen")?.listen()?, doors)))
}

impl Monitor {
    /// Starts to answer there.
    pub fn start(listener: TcpListener, doors: Doors, vitals: Vitals) -> anyhow::Result<Self> {
        let address = format!("{}://{}", doors.scheme(), listener.local_addr()?);
        let (stop, stopped) = oneshot::channel();
        let tls = doors.options.tls.clone();
        let server = http::serve_monitor(listener, vitals, doors.options, async {
            // A dropped sender also stops it.
            let _ = stopped.await;
        });
        let server = tokio::spawn(async move {
            tokio::select! {
                ended = server => ended,
                never = access::keep_fresh(tls) => match never {},
            }
        });
        Ok(Self { address, stop, server })
    }

    /// Stops answering.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.server.await;
    }
}
