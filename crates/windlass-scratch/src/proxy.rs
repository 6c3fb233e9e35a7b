//! A proxy in front of PostgreSQL that drops answers, falls silent, cuts and refuses connections.

mod relay;
mod wire;

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::Error;
use wire::{Answer, Exchange, Message};

/// Which connections a fault affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Every connection.
    All,
    /// Those that logged in with this `application_name`. Encrypted ones cannot be told apart and have the
    /// empty name.
    Application(String),
}

impl Target {
    /// The connections that logged in with this `application_name`.
    pub fn application(name: impl Into<String>) -> Self {
        Self::Application(name.into())
    }

    fn meets(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Application(wanted) => wanted == name,
        }
    }
}

/// Counts of a [`Proxy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Connections of clients that are open now, including those in the black hole.
    pub connections: usize,
    /// Number of dropped answers.
    pub dropped: u64,
    /// What the black hole took: new connections, and the first data in each direction of existing ones.
    pub swallowed: u64,
}

/// A proxy on a free port of `127.0.0.1` that causes faults between clients and a PostgreSQL server.
///
/// Without a fault it passes everything on. It ends, with every connection through it, when the value is
/// dropped.
///
/// ```no_run
/// use std::time::Duration;
/// use windlass_scratch::{Cluster, ClusterOptions, Proxy, Target, psql};
///
/// let cluster = Cluster::start(&ClusterOptions::new())?;
/// let proxy = Proxy::start(&cluster.url())?;
/// proxy.drop_answers(Target::All, 1);
/// assert!(psql(&proxy.url(), "CREATE TABLE made (x int)").is_err());
/// assert!(proxy.wait_dropped(1, Duration::from_secs(30)));
/// assert_eq!(psql(&proxy.url(), "SELECT count(*) FROM made")?, "0");
/// # Ok::<(), windlass_scratch::Error>(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    url: String,
    accept: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of the server of a URL.
    pub fn start(url: &str) -> Result<Self, Error> {
        let failed = |reason: String| Error::Start { server: "the proxy", reason };
        let refused = |error: io::Error| failed(error.to_string());
        let shape = || failed("the URL has to be like postgres://role@host:port/database".to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(shape)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let host_at = authority.rfind('@').map_or(0, |at| at + 1);
        let (role, host) = authority.split_at(host_at);
        let upstream: Vec<SocketAddr> = host.to_socket_addrs().map_err(|_| shape())?.collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let shared = Arc::new(Shared { upstream, state: Mutex::default(), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        let accept = Some(thread::spawn(move || relay::accept(&own, &listener)));
        Ok(Self { shared, address, url: format!("{scheme}://{role}{address}{rest}"), accept })
    }

    /// The URL that the proxy was started with, but with the proxy's own address.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The address on which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drops the next `count` answers: the server commits, and the client's connection is cut before the
    /// answer arrives.
    ///
    /// See [`drop_answers_tagged`](Self::drop_answers_tagged); here any tag counts.
    pub fn drop_answers(&self, target: Target, count: u64) {
        self.drop_answers_tagged(target, count, &[]);
    }

    /// Drops the next answers of transactions that contain a statement whose tag begins with one of `tags`.
    ///
    /// A tag is the server's name of an executed statement: `COMMIT`, `INSERT 0 1`, and `SELECT 3` for a
    /// `WITH` that ends in `SELECT`. A request that leaves a transaction open, fails, rolls back, executes
    /// nothing or began before this call keeps its answer and does not count. Requests that a client sent
    /// after it without waiting may be executed too.
    pub fn drop_answers_tagged(&self, target: Target, count: u64, tags: &[&str]) {
        let mut state = self.shared.lock();
        state.now += 1;
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        let since = state.now;
        state.losses.push(Loss { target, tags, since, left: count });
    }

    /// Passes nothing on any more, in neither direction, not even the end of a connection.
    ///
    /// New connections are accepted and get no answer. `false` lets new connections through again; those that
    /// were in the black hole stay silent until they are cut.
    pub fn black_hole(&self, is_on: bool) {
        let mut state = self.shared.lock();
        state.is_black_hole = is_on;
        state.connections.values_mut().for_each(|connection| connection.is_swallowed |= is_on);
    }

    /// Closes new connections at once; `false` lets them through again.
    pub fn refuse(&self, is_on: bool) {
        self.shared.lock().is_refusing = is_on;
    }

    /// Delays each chunk from the server by `delay`; zero ends that for later chunks.
    pub fn delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }

    /// Cuts the connections of a target, on both sides, and returns how many there were.
    pub fn cut(&self, target: &Target) -> usize {
        let cut = self.shared.lock().cut(|_, connection| target.meets(&connection.name));
        self.shared.changed.notify_all();
        cut
    }

    /// Cuts every connection and returns how many there were.
    pub fn cut_all(&self) -> usize {
        self.cut(&Target::All)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts()
    }

    /// How many connections of clients are open.
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// How many answers were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.counts().dropped
    }

    /// Waits until the counts satisfy `is_there`; `false` if the limit passes first.
    pub fn wait_for(&self, limit: Duration, is_there: impl Fn(&Counts) -> bool) -> bool {
        let waiting = |state: &mut State| !is_there(&state.counts());
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), limit, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits until `count` answers were dropped since the start; `false` if the limit passes first.
    pub fn wait_dropped(&self, count: u64, limit: Duration) -> bool {
        self.wait_for(limit, |counts| counts.dropped >= count)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.cut_all();
        // A last connection wakes the accepting thread. If that connection fails, do not wait for the thread.
        if TcpStream::connect(self.address).is_ok() {
            let _ = self.accept.take().map(JoinHandle::join);
        }
        let threads = std::mem::take(&mut self.shared.lock().threads);
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// Answers that must be dropped.
#[derive(Debug)]
struct Loss {
    target: Target,
    tags: Vec<String>,
    /// Only requests that began at this time or later count.
    since: u64,
    left: u64,
}

impl Loss {
    fn meets(&self, name: &str, began: u64) -> bool {
        self.left > 0 && self.since <= began && self.target.meets(name)
    }

    fn has_tag_of(&self, tags: &[String]) -> bool {
        self.tags.is_empty() || tags.iter().any(|tag| self.tags.iter().any(|wanted| tag.starts_with(wanted)))
    }
}

/// What to do with a message of the server.
enum Verdict {
    Pass,
    /// It may have to be dropped; the rest of the answer decides.
    Hold,
    /// Drop it and all held messages, and cut the connection.
    Drop,
}

#[derive(Debug)]
struct Connection {
    client: Arc<TcpStream>,
    server: Option<Arc<TcpStream>>,
    name: String,
    exchange: Exchange,
    is_swallowed: bool,
}

impl Connection {
    fn shut_down(&self) {
        // An error means that this side has closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.as_ref().map(|server| server.shutdown(Shutdown::Both));
    }
}

#[derive(Debug, Default)]
struct State {
    /// The open connections. A thread whose connection is no longer here ends.
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    losses: Vec<Loss>,
    /// How many drops were requested.
    now: u64,
    is_black_hole: bool,
    is_refusing: bool,
    is_stopping: bool,
    delay: Duration,
    dropped: u64,
    swallowed: u64,
    threads: Vec<JoinHandle<()>>,
}

impl State {
    fn counts(&self) -> Counts {
        Counts { connections: self.connections.len(), dropped: self.dropped, swallowed: self.swallowed }
    }

    fn connect(&mut self, client: &Arc<TcpStream>) -> u64 {
        self.accepted += 1;
        self.swallowed += u64::from(self.is_black_hole);
        let connection = Connection {
            client: Arc::clone(client),
            server: None,
            name: String::new(),
            exchange: Exchange::default(),
            is_swallowed: self.is_black_hole,
        };
        self.connections.insert(self.accepted, connection);
        self.accepted
    }

    fn cut(&mut self, is_chosen: impl Fn(u64, &Connection) -> bool) -> usize {
        let before = self.connections.len();
        self.connections.retain(|&id, connection| {
            let is_cut = is_chosen(id, connection);
            if is_cut {
                connection.shut_down();
            }
            !is_cut
        });
        before - self.connections.len()
    }
}

#[derive(Debug)]
struct Shared {
    upstream: Vec<SocketAddr>,
    state: Mutex<State>,
    /// Signals each change of the state to waiting threads.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` on a connection that was not cut.
    fn of<T>(&self, id: u64, act: impl FnOnce(&mut Connection, u64) -> T) -> io::Result<T> {
        let mut state = self.lock();
        let now = state.now;
        Ok(act(state.connections.get_mut(&id).ok_or(io::ErrorKind::NotConnected)?, now))
    }

    /// Returns when the next data may be sent, unless the connection was cut or is in the black hole.
    fn gate(&self, id: u64) -> io::Result<()> {
        let mut state = self.lock();
        match state.connections.get(&id) {
            Some(connection) if !connection.is_swallowed => return Ok(()),
            Some(_) => state.swallowed += 1,
            None => {}
        }
        self.changed.notify_all();
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Waits for the delay, or until the connection is cut.
    fn pause(&self, id: u64) {
        let state = self.lock();
        let delay = state.delay;
        let is_open = |state: &mut State| state.connections.contains_key(&id);
        drop(self.changed.wait_timeout_while(state, delay, is_open));
    }

    /// Decides about a message of the server. Counting a drop and cutting the connection are one step.
    fn judge(&self, id: u64, message: &Message) -> io::Result<Verdict> {
        let mut state = self.lock();
        let State { connections, losses, .. } = &mut *state;
        let connection = connections.get_mut(&id).ok_or(io::ErrorKind::NotConnected)?;
        let name = &connection.name;
        let found = match connection.exchange.answer(message) {
            Answer::Part(began) if losses.iter().any(|loss| loss.meets(name, began)) => {
                return Ok(Verdict::Hold);
            }
            Answer::Other | Answer::Part(_) => None,
            Answer::Committed(began, tags) => {
                losses.iter_mut().find(|loss| loss.meets(name, began) && loss.has_tag_of(&tags))
            }
        };
        let Some(loss) = found else { return Ok(Verdict::Pass) };
        loss.left -= 1;
        losses.retain(|loss| loss.left > 0);
        state.dropped += 1;
        state.cut(|other, _| other == id);
        self.changed.notify_all();
        Ok(Verdict::Drop)
    }

    /// Closes a connection after one side has ended it. A connection in the black hole stays open until it is
    /// cut.
    fn end(&self, id: u64) {
        let is_held =
            |state: &mut State| state.connections.get(&id).is_some_and(|connection| connection.is_swallowed);
        let state = self.changed.wait_while(self.lock(), is_held);
        state.unwrap_or_else(PoisonError::into_inner).cut(|other, _| other == id);
        self.changed.notify_all();
    }
}
