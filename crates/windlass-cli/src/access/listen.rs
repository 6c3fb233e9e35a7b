//! Addresses that this process listens on: reserved before the store is opened, listened on after it.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::failure::{Exit, Failure};

/// Connections that may wait to be accepted; the standard library uses the same number.
const BACKLOG: u32 = 1024;

/// An address that is bound, without a listener. Clients are still refused there, as if no server ran.
#[derive(Debug)]
pub struct Reserved {
    socket: TcpSocket,
    address: SocketAddr,
    /// The flag that gives another address.
    flag: &'static str,
}

impl Reserved {
    /// Binds an address.
    ///
    /// # Errors
    /// The address is taken, or this user may not use it.
    pub fn at(address: SocketAddr, flag: &'static str) -> Result<Self, Failure> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let bound = socket.and_then(|socket| {
            // Without this, connections of a server that has just ended would keep the next one from
            // starting.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(socket)
        });
        let socket = bound.map_err(|error| not_listening(address, flag, &error))?;
        Ok(Self { socket, address, flag })
    }

    /// Lets clients in.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn listen(self) -> Result<TcpListener, Failure> {
        let Self { socket, address, flag } = self;
        socket.listen(BACKLOG).map_err(|error| not_listening(address, flag, &error))
    }
}

fn not_listening(address: SocketAddr, flag: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::new(Exit::Refused, format!("{address} is taken by another process"))
                .hint(format!("choose another with {flag}, such as {flag} 127.0.0.1:0 for any free port"))
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(Exit::Refused, format!("this user may not listen on {address}"))
                .hint(format!("choose a port above 1023 with {flag}"))
        }
        _ => Failure::new(Exit::Failed, format!("cannot listen on {address}: {error}"))
            .hint(format!("choose another address with {flag}")),
    }
}
