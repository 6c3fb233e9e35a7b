//! Messages to a service manager: `Type=notify` of systemd. It is written here, since it is only three
//! datagrams.
//! The service sends READY=1 when it serves, STOPPING=1 when it drains, and WATCHDOG=1 while it does its
//! work (LIVENESS-TRUTH).

use std::{
    env,
    ffi::OsString,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

/// How often to report within the watchdog's limit: one answer of the store may take some time.
const SIGNS_PER_LIMIT: u32 = 3;

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub struct Systemd {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

/// A thread that reports to the manager that the service works. It ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _stop: mpsc::Sender<()>,
}

impl Systemd {
    /// The manager that the environment names. A socket that cannot be used is logged; the service runs
    /// without it.
    pub fn from_env() -> Self {
        let to = env::var_os("NOTIFY_SOCKET").and_then(|name| match open(&name) {
            Ok(to) => Some(to),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used; the service manager gets no messages");
                None
            }
        });
        let watchdog = watchdog(
            env::var("WATCHDOG_USEC").ok().as_deref(),
            env::var("WATCHDOG_PID").ok().as_deref(),
            std::process::id(),
        );
        Self { to, watchdog }
    }

    /// Reports that the service serves.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// Reports that the service drains.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Reports for as long as `alive` is true, if the manager has a watchdog. It has its own thread:
    /// handlers may block every thread of the runtime, and that is no reason for a restart
    /// (NO-FALSE-DEATH).
    pub fn watch(&self, alive: impl AsyncFn() -> bool + Send + 'static) -> io::Result<Option<Watchdog>> {
        let (Some(limit), Some((socket, to))) = (self.watchdog, &self.to) else { return Ok(None) };
        let manager = Self { to: Some((socket.try_clone()?, to.clone())), watchdog: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = mpsc::channel::<()>();
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(limit / SIGNS_PER_LIMIT) {
                if runtime.block_on(alive()) {
                    manager.tell("WATCHDOG=1");
                } else {
                    tracing::debug!("the service manager gets no sign of life: the work is not done");
                }
            }
        })?;
        Ok(Some(Watchdog { _stop: stop }))
    }

    fn tell(&self, state: &str) {
        let Some((socket, to)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), to) {
            tracing::debug!(%error, state, "the service manager could not be told");
        }
    }
}

/// A path, or a name in the abstract namespace if it starts with `@`.
fn open(name: &OsString) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not delay a stop.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// The watchdog's limit, if it is meant for this process.
fn watchdog(limit_us: Option<&str>, pid: Option<&str>, own: u32) -> Option<Duration> {
    let limit = Duration::from_micros(limit_us?.parse().ok()?);
    let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
    (is_ours && !limit.is_zero()).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_counts_only_if_it_is_meant_for_this_process() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog(Some("1000000"), None, 7), second);
        assert_eq!(watchdog(Some("1000000"), Some("7"), 7), second);
        assert_eq!(watchdog(Some("1000000"), Some("8"), 7), None);
        for wrong in [None, Some(""), Some("0"), Some("-1"), Some("1s")] {
            assert_eq!(watchdog(wrong, None, 7), None, "{wrong:?}");
        }
    }

    #[test]
    fn both_kinds_of_socket_are_spoken_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("windlass-test-{}", std::process::id());
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for (socket, address) in [(by_path, path.into_os_string()), (by_name, format!("@{name}").into())] {
            Systemd { to: Some(open(&address).unwrap()), watchdog: None }.ready();
            let mut text = [0; 64];
            let n = socket.recv(&mut text).unwrap();
            assert_eq!(&text[..n], b"READY=1", "{address:?}");
        }
    }
}
