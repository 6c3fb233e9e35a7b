//! The store of one test: its schema, and commands on it.

use std::{
    process::Command,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use windlass_scratch::{Cluster, ClusterOptions, Mode, psql, shared_url};

use super::until;
use crate::process::{self, Process, Said};

/// Settings that make a fault and its recovery short. The longest allowed heartbeat is a third of the lease
/// time.
const SETTINGS: [(&str, &str); 4] = [
    ("WINDLASS_LEASE_TTL_MS", "3500"),
    ("WINDLASS_HEARTBEAT_MS", "400"),
    ("WINDLASS_SWEEP_MS", "400"),
    ("WINDLASS_ALLOW_TARGET", "127.0.0.0/8"),
];

/// A schema of its own, on a shared server or on its own server. Declare it before the processes that use it:
/// Rust drops values in reverse order.
pub struct Place {
    url: String,
    schema: String,
    settings: Vec<(String, String)>,
    folder: TempDir,
    /// Its own servers; none if it shares one.
    clusters: Vec<Cluster>,
    /// Which of them accepts writes.
    primary: AtomicUsize,
}

impl Place {
    /// A schema on the server that all tests share. For faults that affect no other schema.
    ///
    /// # Errors
    /// If there is no server, or the schema cannot be created.
    pub fn shared() -> Result<Self> {
        Self::new(&shared_url()?, Vec::new())
    }

    /// A server of its own.
    ///
    /// # Errors
    /// If it does not start, or the schema cannot be created.
    pub fn alone(options: &ClusterOptions) -> Result<Self> {
        let cluster = Cluster::start(options)?;
        Self::new(&cluster.url(), vec![cluster])
    }

    /// A primary and a standby of its own. The address names both, and each commit of the primary waits for
    /// the standby.
    ///
    /// # Errors
    /// If one does not start, or the schema cannot be created.
    pub fn replicated(options: &ClusterOptions) -> Result<Self> {
        let primary = Cluster::start(options)?;
        let standby = primary.standby()?;
        primary.wait_for_standby(true)?;
        let both = format!("127.0.0.1:{},127.0.0.1:{}", standby.port(), primary.port());
        let url = primary.url().replace(&format!("127.0.0.1:{}", primary.port()), &both);
        Self::new(&url, vec![primary, standby])
    }

    fn new(url: &str, clusters: Vec<Cluster>) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let schema = format!("f_{}_{nanos}_{number}", std::process::id());
        let url = format!("{url}?application_name={schema}");
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let place = Self {
            url,
            schema,
            settings,
            folder: tempfile::tempdir()?,
            clusters,
            primary: AtomicUsize::new(0),
        };
        let said = place.say(["migrate"])?;
        ensure!(said.code == Some(0), "the schema could not be made: {said:?}");
        Ok(place)
    }

    /// The same with another setting for all later commands.
    #[must_use]
    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.settings.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// The same for a test in which no worker may be taken for dead, even on a slow machine.
    #[must_use]
    pub fn patient(self) -> Self {
        self.with("WINDLASS_LEASE_TTL_MS", "30000")
    }

    /// The address of the server. The names of its sessions contain the schema.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The server, if this place has its own.
    ///
    /// # Errors
    /// If the server is shared.
    pub fn cluster(&self) -> Result<&Cluster> {
        self.clusters.get(self.primary.load(Ordering::Relaxed)).context("this place shares its server")
    }

    /// The server that follows the primary.
    ///
    /// # Errors
    /// If there is none.
    pub fn standby(&self) -> Result<&Cluster> {
        self.clusters.get(self.primary.load(Ordering::Relaxed) ^ 1).context("this place has no standby")
    }

    /// The primary crashes and the standby takes its place. No standby follows it until [`Place::rejoin`].
    ///
    /// # Errors
    /// If a server refuses.
    pub fn fail_over(&self) -> Result<()> {
        self.cluster()?.stop(Mode::Immediate)?;
        self.primary.fetch_xor(1, Ordering::Relaxed);
        let primary = self.cluster()?;
        primary.promote()?;
        Ok(primary.wait_for_standby(false)?)
    }

    /// The server that crashed follows the other one. From then on each commit waits for it again.
    ///
    /// # Errors
    /// If a server refuses.
    pub fn rejoin(&self) -> Result<()> {
        self.standby()?.follow(self.cluster()?)?;
        Ok(self.cluster()?.wait_for_standby(true)?)
    }

    /// The name of the sessions for a purpose, such as `claims`.
    pub fn sessions_for(&self, purpose: &str) -> String {
        format!("{} {purpose}", self.schema)
    }

    /// Queries the database, not through a proxy; `windlass.` stands for the schema.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn ask(&self, sql: &str) -> Result<String> {
        let sql = sql.replace("windlass.", &format!("{}.", self.schema));
        Ok(match self.cluster() {
            Ok(cluster) => cluster.psql(&sql)?,
            // Not one of the sessions of the store.
            Err(_) => psql(&shared_url()?, &sql)?,
        })
    }

    /// Queries a number.
    ///
    /// # Errors
    /// If the server reports an error, or the answer is not a number.
    pub fn count(&self, sql: &str) -> Result<u64> {
        let answer = self.ask(sql)?;
        answer.parse().with_context(|| format!("not a number: {answer:?}"))
    }

    /// The program with arguments, on this store at an address.
    ///
    /// # Errors
    /// If the program cannot be found.
    pub fn command_at<'a>(&self, url: &str, arguments: impl IntoIterator<Item = &'a str>) -> Result<Command> {
        let mut command = process::command(process::windlass()?);
        command.args(arguments).args(["--store", url, "--schema", &self.schema]);
        // A `windlass.toml` in the developer's folder must not change a test.
        command.envs(self.settings.iter().cloned()).current_dir(self.folder.path());
        Ok(command)
    }

    /// The program with arguments, on this store.
    ///
    /// # Errors
    /// If the program cannot be found.
    pub fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Command> {
        self.command_at(&self.url, arguments)
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// If it cannot start or does not end.
    pub fn say<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Said> {
        process::run(self.command(arguments)?)
    }

    /// Starts a worker with `slots` slots and waits until it is registered.
    ///
    /// # Errors
    /// If it ends or does not register.
    pub async fn worker(&self, slots: u32) -> Result<Process> {
        self.worker_at(&self.url, slots).await
    }

    /// The same at another address of the same store, such as that of a proxy.
    ///
    /// # Errors
    /// If it ends or does not register.
    pub async fn worker_at(&self, url: &str, slots: u32) -> Result<Process> {
        let slots = slots.to_string();
        self.registered(self.command_at(url, ["worker", "--slots", &slots])?).await
    }

    /// The same for a worker that knows only servers; their addresses are separated by commas.
    ///
    /// # Errors
    /// If it ends or does not register.
    pub async fn remote_worker(&self, servers: &str, slots: u32) -> Result<Process> {
        self.registered(self.remote_worker_command(servers, slots)?).await
    }

    /// The command of a worker that knows only servers.
    ///
    /// # Errors
    /// If the program cannot be found.
    pub fn remote_worker_command(&self, servers: &str, slots: u32) -> Result<Command> {
        let mut command = process::command(process::windlass()?);
        command.args(["worker", "--server", servers, "--slots", &slots.to_string()]);
        command.envs(self.settings.iter().cloned()).current_dir(self.folder.path());
        Ok(command)
    }

    async fn registered(&self, command: Command) -> Result<Process> {
        let mut worker = Process::start(command)?;
        let pid = worker.pid();
        until("a worker has registered", || {
            if let Some(status) = worker.ended()? {
                worker.join_readers();
                anyhow::bail!("a worker ended with {status}: {}", worker.transcript());
            }
            self.is_live(pid)
        })
        .await?;
        Ok(worker)
    }

    /// Whether the store takes a process for a live worker.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn is_live(&self, pid: u32) -> Result<bool> {
        Ok(self.registration(pid)?.is_some())
    }

    /// The current registration of a process.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn registration(&self, pid: u32) -> Result<Option<String>> {
        let found = self.ask(&format!(
            "SELECT max(id) FROM windlass.worker
             WHERE pid = {pid} AND ended_at IS NULL AND expires_at > windlass.now_ms()"
        ))?;
        Ok(Some(found).filter(|id| !id.is_empty()))
    }

    /// How many tasks a process has finished.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn done_by(&self, pid: u32) -> Result<u64> {
        self.count(&format!(
            "SELECT count(*) FROM windlass.history AS h JOIN windlass.worker AS w ON w.id = h.worker WHERE w.pid = {pid}"
        ))
    }

    /// The tasks that a process holds in the store.
    ///
    /// # Errors
    /// If the server reports an error.
    pub fn held_by(&self, pid: u32) -> Result<Vec<String>> {
        let found = self.ask(&format!(
            "SELECT windlass.id_text(t.id) FROM windlass.task AS t JOIN windlass.worker AS w ON w.id = t.worker
             WHERE t.state = 2 AND w.pid = {pid} ORDER BY t.id"
        ))?;
        Ok(found.lines().map(str::to_owned).collect())
    }

    /// How long after its last heartbeat a worker is taken for dead.
    pub fn lease_ttl(&self) -> Duration {
        let last = self.settings.iter().rev().find(|(name, _)| name == "WINDLASS_LEASE_TTL_MS");
        Duration::from_millis(last.and_then(|(_, value)| value.parse().ok()).unwrap_or_default())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.clusters.is_empty() {
            // If a test fails, its server is removed too, with the schema.
            let _ = self.ask(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
        }
    }
}
