//! Standbys: servers that repeat what a primary writes, until they are promoted.

use std::{fs, thread, time::Instant};

use super::{Cluster, LOOK_EVERY, Mode, START_LIMIT, SUPERUSER};
use crate::Error;

impl Cluster {
    /// Makes a standby of this server, with the same settings, and waits until it accepts connections that
    /// read.
    ///
    /// # Errors
    /// If the data cannot be copied, or the standby does not start.
    pub fn standby(&self) -> Result<Self, Error> {
        let standby = Self::empty(&self.options, self.superuser_password.clone())?;
        standby.copy_from(self)?;
        standby.start_on_a_free_port()?;
        Ok(standby)
    }

    /// Throws this server's data away and makes it a standby of another one. It keeps its port.
    ///
    /// # Errors
    /// If the data cannot be copied, or the standby does not start.
    pub fn follow(&self, primary: &Self) -> Result<(), Error> {
        self.stop(Mode::Immediate)?;
        fs::remove_dir_all(self.data_dir())?;
        self.copy_from(primary)?;
        self.write_settings()?;
        self.start_again()
    }

    /// Makes a standby a primary, and waits until it accepts writes.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn promote(&self) -> Result<(), Error> {
        self.psql("SELECT pg_promote()").map(drop)
    }

    /// From now on a commit of this server waits for a standby, or for none.
    ///
    /// # Errors
    /// If the server refuses, or no standby follows it within a minute.
    pub fn wait_for_standby(&self, waits: bool) -> Result<(), Error> {
        let names = if waits { "*" } else { "" };
        self.psql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"))?;
        self.psql("SELECT pg_reload_conf()")?;
        let deadline = Instant::now() + START_LIMIT;
        let follows =
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'";
        while waits && self.psql(follows)? == "0" {
            if Instant::now() >= deadline {
                return Err(Error::Start { server: "PostgreSQL", reason: "no standby follows".to_owned() });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Copies the data of a running server, and notes where the standby reads on.
    fn copy_from(&self, primary: &Self) -> Result<(), Error> {
        let mut copy = self.owner.command(self.programs.join("pg_basebackup"));
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream"]);
        copy.arg("--host").arg(primary.socket_dir()).arg("--port").arg(primary.port().to_string());
        copy.args(["--username", SUPERUSER, "--pgdata"]).arg(self.data_dir());
        let output = copy.output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let reason = text.lines().next_back().unwrap_or("pg_basebackup failed").to_owned();
        Err(Error::Start { server: "PostgreSQL", reason })
    }
}
