//! The processes of a long run: complete `windlass up` processes, one of them killed every minute.
//!
//! On PostgreSQL the first process lives for the whole run and is the one that is measured; two others
//! are killed in turns. The embedded store has one process, which is measured just before it is killed.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;

use super::{api::Client, series::Sample};
use crate::{
    args::Common,
    place::{Room, Server},
    program,
};

/// Slots of each process.
const SLOTS: &str = "200";
/// How much history is kept: little, so that its limit is reached early in the run.
const HISTORY_MAX_BYTES: &str = "16MiB";
/// How long a process may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Processes on PostgreSQL.
const MEMBERS: usize = 3;

/// The processes; dropping this ends them.
pub(super) struct Fleet {
    members: Vec<Up>,
    room: Room,
    next_victim: usize,
    wal_peak_mb: f64,
    pub(super) kills: usize,
}

/// One process.
struct Up {
    child: Child,
    port: u16,
    args: Vec<String>,
}

impl Up {
    fn start(args: Vec<String>) -> anyhow::Result<Self> {
        // The port is free at this moment, and no other part of the bench takes one.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = program::windlass()?
            .arg("up")
            .args(&args)
            .args(["--listen", &format!("127.0.0.1:{port}"), "--slots", SLOTS, "--log-level", "error"])
            .args(["--allow-target", "127.0.0.0/8"])
            .env("WINDLASS_HISTORY_MAX_BYTES", HISTORY_MAX_BYTES)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Keep Ctrl-C away from the processes: the bench gets it and then ends them.
            .process_group(0)
            .spawn()
            .context("cannot start `windlass up`")?;
        Ok(Self { child, port, args })
    }

    fn client(&self) -> Client {
        Client::new(self.port)
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let client = self.client();
        let is_ready = async {
            while !client.is_ready().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(READY_TIMEOUT, is_ready).await.context("`windlass up` does not get ready")
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

impl Fleet {
    pub(super) async fn start(common: &Common) -> anyhow::Result<Self> {
        let room = Room::new(&common.place, common.dir.as_ref())?;
        let (args, members) = match &room {
            Room::Folder(folder) => {
                let file = folder.path().join("bench.db");
                (vec!["--store".to_owned(), format!("sqlite:{}", file.display())], 1)
            }
            Room::Schema { server, name } => {
                let args = ["--store", &server.url, "--schema", name, "--migrate"];
                (args.map(str::to_owned).to_vec(), MEMBERS)
            }
        };
        let mut fleet = Self { members: Vec::new(), room, next_victim: 0, wal_peak_mb: 0.0, kills: 0 };
        for _ in 0..members {
            let up = Up::start(args.clone())?;
            up.ready().await?;
            fleet.members.push(up);
        }
        Ok(fleet)
    }

    /// The API of the measured process.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        Ok(self.members.first().context("no process")?.client())
    }

    /// Kills the next process and starts another in its place.
    pub(super) async fn kill_one(&mut self) -> anyhow::Result<()> {
        let victims = self.members.len().saturating_sub(1).max(1);
        let place = if self.members.len() > 1 { 1 + self.next_victim % victims } else { 0 };
        self.next_victim += 1;
        let victim = self.members.get_mut(place).context("no victim")?;
        victim.kill()?;
        *victim = Up::start(victim.args.clone())?;
        victim.ready().await?;
        self.kills += 1;
        Ok(())
    }

    /// Reads the size of the write-ahead log. It grows and shrinks all the time, so its peak between two
    /// looks counts.
    pub(super) fn glance(&mut self) {
        let wal_mb = match &self.room {
            Room::Folder(folder) => file_mb(&folder.path().join("bench.db-wal")),
            Room::Schema { server, .. } => server.wal_mb(),
        };
        self.wal_peak_mb = self.wal_peak_mb.max(wal_mb);
    }

    /// Measures the first process and the store.
    pub(super) async fn look(&mut self, minute: f64) -> anyhow::Result<Sample> {
        let up = self.members.first().context("no process")?;
        let process = PathBuf::from(format!("/proc/{}", up.child.id()));
        let status = std::fs::read_to_string(process.join("status"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0)
        };
        let store_mb = match &self.room {
            Room::Folder(folder) => file_mb(&folder.path().join("bench.db")),
            Room::Schema { server, .. } => database_mb(server).await?,
        };
        Ok(Sample {
            minute,
            rss_mb: number("VmRSS:") / 1_000.0,
            threads: number("Threads:"),
            open_files: std::fs::read_dir(process.join("fd"))?.count() as f64,
            async_tasks: async_tasks(&up.client()).await,
            store_mb,
            wal_mb: std::mem::take(&mut self.wal_peak_mb),
        })
    }
}

async fn database_mb(server: &Arc<Server>) -> anyhow::Result<f64> {
    let client = server.connect().await?;
    let row = client.query_one("SELECT pg_database_size(current_database())", &[]).await?;
    Ok(row.get::<_, i64>(0) as f64 / 1e6)
}

/// Live tasks of the async runtime, as the process reports them.
async fn async_tasks(client: &Client) -> f64 {
    let Ok(text) = client.text("/metrics").await else { return 0.0 };
    let line = text.lines().find_map(|line| line.strip_prefix("windlass_process_async_tasks "));
    line.and_then(|figure| figure.trim().parse().ok()).unwrap_or(0.0)
}

impl Server {
    /// Bytes of a private server's write-ahead log. The log of any other server is not measured.
    fn wal_mb(&self) -> f64 {
        let folder = self.cluster.as_ref().map(|cluster| cluster.data_dir().join("pg_wal"));
        folder.map_or(0.0, |folder| folder_bytes(&folder) as f64 / 1e6)
    }
}

fn file_mb(file: &Path) -> f64 {
    std::fs::metadata(file).map_or(0.0, |meta| meta.len() as f64 / 1e6)
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}
