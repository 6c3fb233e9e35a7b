//! A private RabbitMQ node.

pub(crate) mod node;

use std::{
    env, fs,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use self::node::Node;
use crate::{
    Error,
    keeper::{Keeper, owner::Owner, port},
    programs,
};

/// The variable that names the folder of the node shared by the tests of a run.
pub const SHARED_NODE_VARIABLE: &str = "WINDLASS_TEST_RABBITMQ";
/// How long the node may take until it accepts connections; a busy machine needs most of this.
const START_LIMIT: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many sets of ports to try if another process takes one that was free a moment ago.
const PORT_TRIES: usize = 5;
/// What the node logs when it is ready.
const READY: &str = "Server startup complete";
/// How many lines of its log are shown if it does not start.
const REASON_LINES: usize = 6;
/// A small disk or a small memory must not block publishers of a test; tests raise alarms themselves.
const SETTINGS: &str = "disk_free_limit.absolute = 1MB\nvm_memory_high_watermark.relative = 0.6\n";
/// The signal of a clean stop.
const STOP: &str = "TERM";
/// The signal of a crash; also used for a node that is no longer needed, because it is quicker.
const CRASH: &str = "KILL";

/// A private RabbitMQ node, removed with its folder when the value is dropped or the process ends.
///
/// It listens on `127.0.0.1` only and has its own Erlang name server, so that it neither sees nor affects
/// another node on the machine.
#[derive(Debug)]
pub struct Broker {
    // Declared before its name server, so that it is dropped first.
    keeper: Keeper,
    _names: Keeper,
    node: Node,
    #[cfg(feature = "tls")]
    tls_port: Option<u16>,
}

/// Which clients a TLS listener accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsClients {
    /// Clients that know the password.
    Anyone,
    /// Clients that also have a certificate of the node's authority: `client.crt` and `client.key` in its
    /// folder.
    Certified,
}

impl Broker {
    /// Creates a node and waits until it accepts connections.
    pub fn start() -> Result<Self, Error> {
        Self::start_as(None)
    }

    /// The same with a second listener, for TLS; `ca.crt` in its folder is the authority of its certificate.
    #[cfg(feature = "tls")]
    pub fn start_with_tls(clients: TlsClients) -> Result<Self, Error> {
        Self::start_as(Some(clients))
    }

    fn start_as(tls: Option<TlsClients>) -> Result<Self, Error> {
        let mut last = Error::Start { server: "RabbitMQ", reason: "no port is free".to_owned() };
        for _ in 0..PORT_TRIES {
            let Some(ports) = free_ports() else { break };
            match Self::start_on(ports, tls) {
                Err(error @ Error::Start { .. }) => last = error,
                started => return started,
            }
        }
        Err(last)
    }

    fn start_on(ports: [u16; 3], tls: Option<TlsClients>) -> Result<Self, Error> {
        // Unlike PostgreSQL it can run as root.
        let owner = Owner::oneself();
        let (server, names) = (programs::rabbitmq_server()?, programs::epmd()?);
        let folder = owner.folder(None)?;
        let node = Node::new(folder.path(), ports);
        node.write_ports()?;
        let mut settings = SETTINGS.to_owned();
        let tls = tls.zip(port::free());
        if let Some((clients, port)) = tls {
            settings.push_str(&tls_settings(folder.path(), clients, port));
            #[cfg(feature = "tls")]
            crate::tls::write_certificates(folder.path(), owner)?;
        }
        fs::write(folder.path().join("rabbitmq.conf"), settings)?;
        fs::write(folder.path().join("plugins"), "[].\n")?;
        // The node would start a name server that outlives it; start one here that the keeper ends.
        let names = [
            names.into(),
            "-port".into(),
            node.names_port().to_string().into(),
            "-address".into(),
            "127.0.0.1".into(),
        ];
        let names = Keeper::new(owner, owner.folder(None)?, CRASH, &names)?;
        names.start()?;
        wait_for_port(node.names_port(), &names)?;
        let mut command = vec!["env".into()];
        command.extend(node.variables().into_iter().map(|(name, value)| {
            let mut pair = std::ffi::OsString::from(format!("{name}="));
            pair.push(value);
            pair
        }));
        command.push(server.into());
        let broker = Self {
            keeper: Keeper::new(owner, folder, CRASH, &command)?,
            _names: names,
            node,
            #[cfg(feature = "tls")]
            tls_port: tls.map(|(_, port)| port),
        };
        broker.start_again()?;
        Ok(broker)
    }

    /// Where the node is.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The URL of the node's default virtual host, as its only user.
    pub fn url(&self) -> String {
        self.node.url()
    }

    /// The same with TLS, if it was started with TLS.
    #[cfg(feature = "tls")]
    pub fn tls_url(&self) -> Option<String> {
        self.tls_port.map(|port| format!("amqps://guest:guest@localhost:{port}/%2f"))
    }

    /// Runs `rabbitmqctl`. See [`Node::ctl`].
    pub fn ctl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.node.ctl(arguments)
    }

    /// The process of the node; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.keeper.pid()
    }

    /// Stops the node cleanly and waits for its end. Does nothing if it is stopped.
    pub fn stop(&self) -> Result<(), Error> {
        self.keeper.stop(STOP)
    }

    /// Ends the node at once, as in a crash. Messages that it had confirmed are on the disk.
    pub fn kill(&self) -> Result<(), Error> {
        self.keeper.stop(CRASH)
    }

    /// Starts the node on the same ports and the same data, and waits until it accepts connections. Does
    /// nothing if it runs.
    pub fn start_again(&self) -> Result<(), Error> {
        if self.keeper.is_running() {
            return Ok(());
        }
        let log_start = fs::metadata(self.log_path()).map_or(0, |found| found.len() as usize);
        // Collects a node that ended without a stop.
        self.keeper.stop(CRASH)?;
        self.keeper.start()?;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let log = fs::read(self.log_path()).unwrap_or_default();
            let log = String::from_utf8_lossy(log.get(log_start..).unwrap_or_default()).into_owned();
            if log.contains(READY) {
                return Ok(());
            }
            if !self.keeper.is_running() || Instant::now() >= deadline {
                self.keeper.stop(CRASH)?;
                let mut lines: Vec<&str> = log.lines().rev().take(REASON_LINES).map(str::trim).collect();
                lines.reverse();
                return Err(Error::Start { server: "RabbitMQ", reason: lines.join("; ") });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn log_path(&self) -> std::path::PathBuf {
        self.node.folder().join("log")
    }
}

/// The node that tests share: each test has its own queues there and never stops the node.
///
/// In a whole test run `WINDLASS_TEST_RABBITMQ` names its folder; without it this process starts a node of
/// its own, which ends with the process.
pub fn shared_node() -> Result<Node, Error> {
    static OWN: OnceLock<Result<Broker, String>> = OnceLock::new();
    if let Some(folder) = env::var_os(SHARED_NODE_VARIABLE).filter(|folder| !folder.is_empty()) {
        return Node::at(Path::new(&folder));
    }
    match OWN.get_or_init(|| Broker::start().map_err(|error| error.to_string())) {
        Ok(broker) => Ok(broker.node().clone()),
        Err(reason) => Err(Error::Start { server: "the shared RabbitMQ", reason: reason.clone() }),
    }
}

/// The settings of a listener with TLS.
fn tls_settings(folder: &Path, clients: TlsClients, port: u16) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let (authority, certificate, key) = (file("ca.crt"), file("server.crt"), file("server.key"));
    let must_be_certified = clients == TlsClients::Certified;
    format!(
        "listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {authority}\n\
         ssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n\
         ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = {must_be_certified}\n"
    )
}

fn free_ports() -> Option<[u16; 3]> {
    Some([port::free()?, port::free()?, port::free()?])
}

fn wait_for_port(port: u16, keeper: &Keeper) -> Result<(), Error> {
    let deadline = Instant::now() + START_LIMIT;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if !keeper.is_running() || Instant::now() >= deadline {
            let reason = format!("its name server does not listen on port {port}");
            return Err(Error::Start { server: "RabbitMQ", reason });
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
