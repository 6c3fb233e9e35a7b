//! The connection to a server: over TCP, with its own I/O threads; in a simulation over the simulated
//! network, on the caller's runtime.

use std::{fmt, io, pin::Pin, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Handle,
    sync::oneshot,
};

/// Both directions of a connection.
#[doc(hidden)]
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The future of a connection.
#[doc(hidden)]
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Duplex>>> + Send>>;

/// The network of a simulation.
#[doc(hidden)]
pub type Simulated = Arc<dyn Fn(String, u16) -> Connecting + Send + Sync>;

/// How to reach a server.
#[doc(hidden)]
#[derive(Clone, Default)]
pub enum Network {
    /// Over TCP.
    #[default]
    Tcp,
    /// Over the network of a simulation.
    Simulated(Simulated),
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "Tcp",
            Self::Simulated(_) => "Simulated",
        })
    }
}

impl Network {
    /// Connects to a server.
    pub(crate) async fn connect(&self, name: String, port: u16) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Tcp => {
                let stream = TcpStream::connect((name.as_str(), port)).await?;
                // Calls are small, and their callers wait for them.
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Simulated(connect) => connect(name, port).await,
        }
    }

    /// Which server is tried first: processes of one machine start with different ones.
    pub(crate) fn first_turn(&self) -> usize {
        match self {
            Self::Tcp => std::process::id() as usize,
            Self::Simulated(_) => 0,
        }
    }

    /// Starts the I/O thread.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub(crate) fn driver(&self, name: &str) -> io::Result<Driver> {
        match self {
            Self::Tcp => Driver::start(name),
            Self::Simulated(_) => Ok(Driver { handle: Handle::current(), _stop: None }),
        }
    }
}

/// A thread for the I/O of connections: handlers that block every thread of the runtime do not block a call.
pub(crate) struct Driver {
    pub(crate) handle: Handle,
    _stop: Option<oneshot::Sender<()>>,
}

impl Driver {
    fn start(name: &str) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // The sender is dropped to end the thread.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Self { handle, _stop: Some(stop) })
    }
}
