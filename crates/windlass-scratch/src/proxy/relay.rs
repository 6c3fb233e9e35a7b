//! The threads of the proxy: one accepts, two relay each connection, one per direction.

use std::{
    io::{self, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{
    Shared, Verdict,
    wire::{Source, Startup},
};

/// How long the server may take to accept a connection. It is on this machine; a proxy that ends waits for
/// it.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted. File descriptors are then scarce; an immediate retry would
/// use up the CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Most bytes of an answer that are held. Of a longer answer only the last part can be dropped, which is the
/// part that matters.
const HELD_MAX: usize = 64 * 1024 * 1024;

pub(super) fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        let mut state = shared.lock();
        if state.is_stopping {
            return;
        }
        let Ok((client, _)) = accepted else {
            drop(shared.changed.wait_timeout(state, ACCEPT_PAUSE));
            continue;
        };
        if state.is_refusing {
            continue;
        }
        let client = Arc::new(client);
        let id = state.connect(&client);
        if !state.is_black_hole {
            state.threads.retain(|thread| !thread.is_finished());
            let own = Arc::clone(shared);
            state.threads.push(thread::spawn(move || {
                // Every error ends the connection; its reason does not matter.
                let _ = serve(&own, id, &client);
                own.end(id);
            }));
        }
        shared.changed.notify_all();
    }
}

fn serve(shared: &Shared, id: u64, client: &TcpStream) -> io::Result<()> {
    let mut dialled = shared.upstream.iter().map(|address| TcpStream::connect_timeout(address, DIAL_LIMIT));
    let server = dialled.find_map(Result::ok).ok_or(io::ErrorKind::NotConnected)?;
    let server = Arc::new(server);
    shared.of(id, |connection, _| connection.server = Some(Arc::clone(&server)))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut answers) = (Source::new(client), Source::new(&server));
    open(shared, id, (&mut requests, client), (&mut answers, &server))?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = relay_answers(shared, id, answers, client);
            shared.end(id);
        });
        let _ = relay_requests(shared, id, requests, &server);
        shared.end(id);
    });
    Ok(())
}

/// Passes on the data before the first message.
fn open(
    shared: &Shared,
    id: u64,
    (requests, mut client): (&mut Source, &TcpStream),
    (answers, mut server): (&mut Source, &TcpStream),
) -> io::Result<()> {
    loop {
        let (startup, packet) = requests.startup()?;
        if let Startup::Session(name) = &startup {
            shared.of(id, |connection, _| name.clone_into(&mut connection.name))?;
        }
        shared.gate(id)?;
        server.write_all(&packet)?;
        if let Startup::Session(_) = startup {
            return Ok(());
        }
        let byte = answers.byte()?;
        shared.gate(id)?;
        client.write_all(&[byte])?;
        if byte != b'N' {
            (requests.is_opaque, answers.is_opaque) = (true, true);
            return Ok(());
        }
    }
}

fn relay_requests(shared: &Shared, id: u64, mut from: Source, mut to: &TcpStream) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        let message = from.message()?;
        // Record it before it is sent: an answer must not arrive before its request is known.
        shared.of(id, |connection, now| connection.exchange.request(message.kind, now))?;
        out.extend(message.bytes);
        if !from.has_message() {
            shared.gate(id)?;
            to.write_all(&out)?;
            out.clear();
        }
    }
}

fn relay_answers(shared: &Shared, id: u64, mut from: Source, mut to: &TcpStream) -> io::Result<()> {
    let (mut out, mut held) = (Vec::new(), Vec::new());
    loop {
        let message = from.message()?;
        match shared.judge(id, &message)? {
            Verdict::Drop => return Ok(()),
            Verdict::Hold if held.len() < HELD_MAX => held.extend(message.bytes),
            Verdict::Hold | Verdict::Pass => {
                out.append(&mut held);
                out.extend(message.bytes);
            }
        }
        // Data before a held answer need not wait for it.
        if !out.is_empty() && (!held.is_empty() || !from.has_message()) {
            shared.pause(id);
            shared.gate(id)?;
            to.write_all(&out)?;
            out.clear();
        }
    }
}
