//! A private PgBouncer in front of a cluster.

use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Cluster, Error,
    cluster::{percent_encoded, psql},
    keeper::{Keeper, owner::Owner, port},
    programs,
};

/// How long it may take until it accepts connections.
const START_LIMIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many ports to try if another process takes one that was free a moment ago.
const PORT_TRIES: usize = 5;
/// It has no data to lose, and its gentler signals differ between versions.
const SIGNAL: &str = "KILL";

/// When PgBouncer returns a server connection to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client disconnects.
    Session,
    /// At the end of each transaction: session state is lost.
    Transaction,
    /// After each statement; transactions are refused.
    Statement,
}

impl PoolMode {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// The options of a [`PgBouncer`]: its mode, pools of 20 server connections, 1000 clients, otherwise the
/// defaults of a fresh installation.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    settings: Vec<(String, String)>,
}

impl PoolOptions {
    /// A pooler of this mode.
    pub fn new(mode: PoolMode) -> Self {
        let limits =
            Self { settings: Vec::new() }.set("pool_mode", mode.name()).set("max_client_conn", "1000");
        limits.pool_size(20)
    }

    /// How many server connections there are for role `windlass`.
    #[must_use]
    pub fn pool_size(self, count: u32) -> Self {
        self.set("default_pool_size", count.to_string())
    }

    /// Adds a line to `pgbouncer.ini`; the last line of a name counts.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

/// A private PgBouncer, removed with its folder when the value is dropped or the process ends.
///
/// Like the cluster it listens on `127.0.0.1`; its console is open only on the Unix socket of its own folder.
#[derive(Debug)]
pub struct PgBouncer {
    keeper: Keeper,
    port: u16,
    password: Option<String>,
}

impl PgBouncer {
    /// Starts a pooler in front of the database `windlass` of a cluster and waits until it accepts
    /// connections.
    pub fn start(cluster: &Cluster, options: &PoolOptions) -> Result<Self, Error> {
        let owner = Owner::find()?;
        let program = programs::pgbouncer()?;
        let folder = owner.folder(None)?;
        let ini = folder.path().join("pgbouncer.ini");
        let keeper = Keeper::new(owner, folder, SIGNAL, &[program.into(), "-q".into(), ini.into()])?;
        let mut pooler = Self { keeper, port: 0, password: cluster.password().map(str::to_owned) };
        let mut last = Error::Start { server: "PgBouncer", reason: "no port is free".to_owned() };
        for _ in 0..PORT_TRIES {
            let Some(port) = port::free() else { break };
            pooler.port = port;
            pooler.write_files(owner, cluster.port(), options)?;
            match pooler.start_again() {
                Err(error @ Error::Start { .. }) => last = error,
                Err(error) => return Err(error),
                Ok(()) => return Ok(pooler),
            }
        }
        Err(last)
    }

    /// The URL of database `windlass` through the pooler, as role `windlass`.
    pub fn url(&self) -> String {
        let password = self.password.as_deref().map(|text| format!(":{}", percent_encoded(text)));
        format!("postgres://windlass{}@127.0.0.1:{}/windlass", password.unwrap_or_default(), self.port)
    }

    /// The port on `127.0.0.1`.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its files and its Unix socket.
    pub fn folder(&self) -> &Path {
        self.keeper.folder()
    }

    /// The process; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.keeper.pid()
    }

    /// Runs a command such as `SHOW POOLS` on the console: rows as lines, columns separated by `|`.
    pub fn admin(&self, command: &str) -> Result<String, Error> {
        let socket = percent_encoded(&self.keeper.folder().to_string_lossy());
        psql::psql(&format!("postgres://postgres@{socket}:{}/pgbouncer", self.port), &format!("{command};"))
    }

    /// Ends it at once, with every connection through it. Does nothing if it is stopped.
    pub fn stop(&self) -> Result<(), Error> {
        self.keeper.stop(SIGNAL)
    }

    /// Starts it on the same port and waits until it accepts connections. Does nothing if it runs.
    pub fn start_again(&self) -> Result<(), Error> {
        if self.keeper.is_running() {
            return Ok(());
        }
        // Collects one that ended without a stop, and its socket.
        self.keeper.stop(SIGNAL)?;
        let _ = fs::remove_file(self.keeper.folder().join(format!(".s.PGSQL.{}", self.port)));
        self.keeper.start()?;
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() || !self.keeper.is_running() {
            if !self.keeper.is_running() || Instant::now() >= deadline {
                self.keeper.stop(SIGNAL)?;
                let log = fs::read_to_string(self.keeper.folder().join("log")).unwrap_or_default();
                let reason = log.lines().next_back().unwrap_or("no reason in its log").to_owned();
                return Err(Error::Start { server: "PgBouncer", reason });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn write_files(&self, owner: Owner, server_port: u16, options: &PoolOptions) -> Result<(), Error> {
        let folder = self.keeper.folder();
        let shown = folder.display();
        let mut ini = format!(
            "[databases]\nwindlass = host=127.0.0.1 port={server_port} dbname=windlass\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir = {shown}\n\
             auth_type = hba\nauth_hba_file = {shown}/hba\nauth_file = {shown}/users\nadmin_users = postgres\n",
            self.port
        );
        for (name, value) in &options.settings {
            let _ = writeln!(ini, "{name} = {value}");
        }
        let method = if self.password.is_some() { "scram-sha-256" } else { "trust" };
        let access = format!("local all all trust\nhost windlass windlass 127.0.0.1/32 {method}\n");
        let password = self.password.as_deref().unwrap_or_default().replace('"', "\"\"");
        let users = format!("\"windlass\" \"{password}\"\n\"postgres\" \"\"\n");
        for (name, text) in [("pgbouncer.ini", ini), ("hba", access), ("users", users)] {
            write_for(owner, &folder.join(name), &text)?;
        }
        Ok(())
    }
}

fn write_for(owner: Owner, path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text)?;
    owner.give(path)
}
