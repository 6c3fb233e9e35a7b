//! A private PostgreSQL server.

pub(crate) mod options;
pub(crate) mod psql;
pub(crate) mod shared;
mod standby;

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    ClusterOptions, Error,
    keeper::{Keeper, owner::Owner, port},
    programs,
};

/// The role of tests and benchmarks; it owns the database of the same name and nothing else.
const ROLE: &str = "windlass";
/// The role that creates the cluster.
const SUPERUSER: &str = "postgres";
/// How long the server may take until it accepts connections. Recovery after a crash under load takes a
/// while.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How often to check whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many ports to try if another process takes one that was free a moment ago.
const PORT_TRIES: usize = 5;
/// How many lines of its log are shown if it does not start.
const REASON_LINES: usize = 6;
/// Bytes of randomness in the superuser's password.
const PASSWORD_BYTES: u64 = 16;

/// A private PostgreSQL server, removed with its folder when the value is dropped or the process ends.
///
/// It listens on `127.0.0.1` and on a Unix socket in its own folder, which only the server's user and root
/// can open. Role `windlass` owns database `windlass`; it is not a superuser.
#[derive(Debug)]
pub struct Cluster {
    keeper: Keeper,
    owner: Owner,
    programs: PathBuf,
    options: ClusterOptions,
    port: AtomicU16,
    superuser_password: String,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Ends every session, writes a checkpoint, stops.
    Fast,
    /// Stops at once, as in a crash: the next start recovers from the log.
    Immediate,
}

impl Mode {
    fn signal(self) -> &'static str {
        match self {
            Self::Fast => "INT",
            Self::Immediate => "QUIT",
        }
    }
}

impl Cluster {
    /// Creates a cluster and waits until it accepts connections.
    pub fn start(options: &ClusterOptions) -> Result<Self, Error> {
        let cluster = Self::empty(options, random_password()?)?;
        cluster.initialise()?;
        cluster.start_on_a_free_port()?;
        cluster.make_roles()?;
        Ok(cluster)
    }

    /// A cluster without data.
    fn empty(options: &ClusterOptions, superuser_password: String) -> Result<Self, Error> {
        let owner = Owner::find()?;
        let programs = programs::postgres_folder()?;
        let folder = owner.folder(options.parent.as_deref())?;
        let data = folder.path().join("data");
        let server = [programs.join("postgres").into(), "-D".into(), data.into()];
        let keeper = Keeper::new(owner, folder, Mode::Immediate.signal(), &server)?;
        Ok(Self {
            keeper,
            owner,
            programs,
            options: options.clone(),
            port: AtomicU16::new(0),
            superuser_password,
        })
    }

    /// The URL of database `windlass` as role `windlass`.
    pub fn url(&self) -> String {
        let password = self.options.password.as_deref().map(|text| format!(":{}", percent_encoded(text)));
        format!("postgres://{ROLE}{}@127.0.0.1:{}/{ROLE}", password.unwrap_or_default(), self.port())
    }

    /// The URL of database `windlass` as a superuser, with its password.
    pub fn superuser_url(&self) -> String {
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{}/{ROLE}", self.superuser_password, self.port())
    }

    /// The URL as role `windlass`, with TLS and full verification of the server's certificate; `None` without
    /// TLS.
    pub fn tls_url(&self) -> Option<String> {
        let ca_path = self.ca_path()?;
        Some(format!("{}?sslmode=verify-full&sslrootcert={}", self.url(), ca_path.display()))
    }

    /// The certificate of the authority that signed the server's; `None` without TLS.
    pub fn ca_path(&self) -> Option<PathBuf> {
        self.options.with_tls.then(|| self.keeper.folder().join("ca.crt"))
    }

    /// The port on `127.0.0.1`; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    /// The folder of the Unix socket.
    pub fn socket_dir(&self) -> &Path {
        self.keeper.folder()
    }

    /// The data folder of the server.
    pub fn data_dir(&self) -> PathBuf {
        self.keeper.folder().join("data")
    }

    /// The server's log so far.
    pub fn log(&self) -> String {
        self.log_since(0)
    }

    /// The process of the server; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.keeper.pid()
    }

    /// Whether the server's process runs.
    pub fn is_running(&self) -> bool {
        self.keeper.is_running()
    }

    /// Stops the server and waits for its end. Does nothing if it is stopped.
    pub fn stop(&self, mode: Mode) -> Result<(), Error> {
        self.keeper.stop(mode.signal())
    }

    /// Starts the server on the same port and the same data, and waits until it accepts connections. Does
    /// nothing if it runs.
    pub fn start_again(&self) -> Result<(), Error> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match self.start_once() {
                // After a kill, old backends hold the memory and another old connection may hold the port for
                // a moment.
                Err(Error::Start { reason, .. })
                    if reason.contains("in use") && Instant::now() < deadline =>
                {
                    thread::sleep(LOOK_EVERY);
                }
                result => return result,
            }
        }
    }

    /// Stops the server and starts it again.
    pub fn restart(&self, mode: Mode) -> Result<(), Error> {
        self.stop(mode)?;
        self.start_again()
    }

    /// Runs statements in database `windlass` as superuser, through psql and the Unix socket. See
    /// [`psql`](crate::psql()).
    pub fn psql(&self, sql: &str) -> Result<String, Error> {
        self.psql_in(ROLE, sql)
    }

    fn psql_in(&self, database: &str, sql: &str) -> Result<String, Error> {
        let socket = percent_encoded(&self.socket_dir().to_string_lossy());
        let url = format!("postgres://{SUPERUSER}@{socket}:{}/{database}", self.port());
        psql::run(&self.psql_program()?, &url, sql)
    }

    fn psql_program(&self) -> Result<PathBuf, Error> {
        let beside = self.programs.join("psql");
        if beside.is_file() { Ok(beside) } else { programs::psql() }
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    fn initialise(&self) -> Result<(), Error> {
        let mut initdb = self.owner.command(self.programs.join("initdb"));
        initdb.args([
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--auth=trust",
            "--username",
            SUPERUSER,
            "-D",
        ]);
        let output = initdb.arg(self.data_dir()).output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let reason = text.lines().next_back().unwrap_or("initdb failed").to_owned();
            return Err(Error::Start { server: "PostgreSQL", reason });
        }
        #[cfg(feature = "tls")]
        if self.options.with_tls {
            crate::tls::write_certificates(self.keeper.folder(), self.owner)?;
        }
        let host_method = if self.options.password.is_some() { "scram-sha-256" } else { "trust" };
        // The socket's folder is private, so only the server's user or root can connect there.
        let access = format!(
            "local all all trust\n\
             local replication all trust\n\
             host all {ROLE} 127.0.0.1/32 {host_method}\n\
             host all all 127.0.0.1/32 scram-sha-256\n"
        );
        fs::write(self.data_dir().join("pg_hba.conf"), access)?;
        Ok(())
    }

    fn start_on_a_free_port(&self) -> Result<(), Error> {
        let mut last = None;
        for _ in 0..PORT_TRIES {
            let none = || Error::Start { server: "PostgreSQL", reason: "no port is free".to_owned() };
            self.port.store(port::free().ok_or_else(none)?, Ordering::Relaxed);
            self.write_settings()?;
            match self.start_once() {
                Err(Error::Start { server, reason }) if reason.contains("in use") => {
                    last = Some(Error::Start { server, reason });
                }
                result => return result,
            }
        }
        Err(last.unwrap_or(Error::KeeperGone))
    }

    fn write_settings(&self) -> Result<(), Error> {
        let folder = self.keeper.folder().to_string_lossy();
        let port = self.port().to_string();
        let mut settings: Vec<(&str, &str)> = vec![
            ("listen_addresses", "127.0.0.1"),
            ("port", &port),
            ("unix_socket_directories", &folder),
            ("max_connections", "100"),
        ];
        let [authority, certificate, key] =
            ["ca.crt", "server.crt", "server.key"].map(|name| format!("{folder}/{name}"));
        if self.options.with_tls {
            settings.extend([("ssl", "on"), ("ssl_ca_file", authority.as_str())]);
            settings.extend([("ssl_cert_file", certificate.as_str()), ("ssl_key_file", key.as_str())]);
        }
        settings.extend(self.options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut text = String::new();
        for (name, value) in settings {
            let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
        }
        fs::write(self.data_dir().join("postgresql.conf"), text)?;
        Ok(())
    }

    fn start_once(&self) -> Result<(), Error> {
        if self.is_running() {
            return Ok(());
        }
        let log_start = fs::metadata(self.log_path()).map_or(0, |found| found.len());
        // Collects a server that ended without a stop.
        self.keeper.stop(Mode::Immediate.signal())?;
        let pid = self.keeper.start()?;
        let deadline = Instant::now() + START_LIMIT;
        while !self.is_ready(pid) {
            if !self.is_running() || Instant::now() >= deadline {
                self.keeper.stop("KILL")?;
                let log = self.log_since(log_start);
                let mut lines: Vec<&str> = log.lines().rev().take(REASON_LINES).map(str::trim).collect();
                lines.reverse();
                let reason = lines.join("; ");
                return Err(Error::Start { server: "PostgreSQL", reason });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Reads the server's status file: the process in the first line; the eighth says whether it accepts
    /// connections.
    fn is_ready(&self, pid: u32) -> bool {
        let Ok(note) = fs::read_to_string(self.data_dir().join("postmaster.pid")) else { return false };
        let line = |number: usize| note.lines().nth(number).map(str::trim);
        line(0) == Some(pid.to_string().as_str()) && line(7) == Some("ready")
    }

    fn make_roles(&self) -> Result<(), Error> {
        let password = self.options.password.as_deref().map(|text| text.replace('\'', "''"));
        let password = password.map_or_else(String::new, |text| format!(" PASSWORD '{text}'"));
        let sql = format!(
            "ALTER ROLE {SUPERUSER} PASSWORD '{}';\nCREATE ROLE {ROLE} LOGIN{password};\n\
             CREATE DATABASE {ROLE} OWNER {ROLE};\n",
            self.superuser_password
        );
        self.psql_in("postgres", &sql).map(drop)
    }

    fn log_path(&self) -> PathBuf {
        self.keeper.folder().join("log")
    }

    fn log_since(&self, start: u64) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = fs::File::open(self.log_path()) {
            let _ = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn random_password() -> Result<String, Error> {
    let mut bytes = Vec::new();
    fs::File::open("/dev/urandom")?.take(PASSWORD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Encodes a text for a URL.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut url, byte| {
        if byte.is_ascii_alphanumeric() {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
        url
    })
}
