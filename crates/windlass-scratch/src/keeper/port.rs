//! A free port on the loopback interface.

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// The first port, below the range that systems use for outgoing connections: any client could take a port of
/// that range while the server restarts.
const FIRST: u32 = 15_000;
const COUNT: u32 = 17_000;

/// A port on which no process listens now. Another process may take it before the server does, so callers
/// retry.
pub fn free() -> Option<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    // Processes that start at the same moment begin at different ports.
    let start = nanos.wrapping_add(process::id().wrapping_mul(7919));
    (0..COUNT)
        .map(|_| FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}
