//! A `windlass up` of its own, and what it uses.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use super::viewers;
use crate::{
    args::Common,
    place::Room,
    program,
    rig::{HistoryArg, Rig},
};

/// How long it may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);

/// The process; dropping this ends it.
pub(super) struct Up {
    child: Child,
    pub(super) port: u16,
    // The store goes after its server.
    _room: Room,
}

impl Up {
    /// A server on a new store with so many tasks, which no worker runs.
    pub(super) async fn start(common: &Common, tasks: usize) -> anyhow::Result<Self> {
        let rig = Rig::new(common, HistoryArg::Kept).await?;
        for queue in ["default", "mail", "reports"] {
            rig.load("noop", queue, tasks / 3).await?;
        }
        let room = rig.into_room().await?;
        let store = match &room {
            Room::Folder(folder) => {
                vec![format!("--store=sqlite:{}", folder.path().join("bench.db").display())]
            }
            Room::Schema { server, name } => {
                vec![format!("--store={}", server.url), format!("--schema={name}")]
            }
        };
        // The port is free at this moment, and no other part of the bench takes one.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = program::windlass()?
            .arg("up")
            .args(store)
            .args(["--listen", &format!("127.0.0.1:{port}"), "--log-level", "error"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Keep Ctrl-C away from the process: the bench gets it and then ends it.
            .process_group(0)
            .spawn()
            .context("cannot start `windlass up`")?;
        let up = Self { child, port, _room: room };
        let is_ready = async {
            while viewers::status(port, "/readyz").await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(READY_TIMEOUT, is_ready).await.context("`windlass up` does not get ready")?;
        Ok(up)
    }

    /// Cores that it uses on average over this time.
    pub(super) async fn cores(&self, span: Duration) -> anyhow::Result<f64> {
        let (before, since) = (self.seconds()?, Instant::now());
        tokio::time::sleep(span).await;
        Ok((self.seconds()? - before) / since.elapsed().as_secs_f64())
    }

    /// Processor time that it has used.
    fn seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name, in parentheses, may have spaces. The times of user and kernel are fields 14 and 15 of all.
        let (_, fields) = stat.rsplit_once(')').context("no name in /proc")?;
        let ticks = |place: usize| -> anyhow::Result<f64> {
            Ok(fields.split_whitespace().nth(place - 3).context("no such field in /proc")?.parse()?)
        };
        Ok((ticks(14)? + ticks(15)?) / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Memory that it has now.
    pub(super) fn resident_mb(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
        let kb: f64 = line.split_whitespace().next().context("no number in /proc")?.parse()?;
        Ok(kb / 1024.0)
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
