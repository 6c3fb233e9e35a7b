//! POISON-CONTAINED with real processes: the program `aborter` is started again and again until every
//! task has ended.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, ensure};

use crate::process::{self, Process, START_LIMIT, Said};

/// Most restarts that one culprit may cost, and two of them.
pub const RESTARTS_MAX: usize = 25;

/// Where the tasks are, and how a process works on them.
pub struct Ground {
    /// The program `aborter`.
    pub aborter: PathBuf,
    /// The address of a store or of a server.
    pub store: String,
    /// Options of every command.
    pub options: Vec<String>,
    /// How long a lease lasts after its renewal; nothing where a restart ends it.
    pub lease: Duration,
}

/// Tasks, and what they do.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many.
    pub tasks: usize,
    /// How many run at once.
    pub slots: usize,
    /// How many of them end the process.
    pub culprits: usize,
    /// How a culprit does that: `abort` or `overflow`.
    pub ends: &'static str,
    /// How long the others take.
    pub ms: u64,
    /// How many jobs they have, which together may use every slot.
    pub jobs: usize,
}

impl Load {
    /// One culprit among so many tasks, or among the 1,000 of a long run, of which each takes a second then.
    pub fn of(tasks: usize, is_long: bool) -> Self {
        let (n, ms) = if is_long { (1_000, 1_000) } else { (tasks, 300) };
        Self { tasks: n, slots: n, culprits: 1, ends: "abort", ms, jobs: 0 }
    }

    /// Ten jobs, with three times as many tasks as may run.
    #[must_use]
    pub fn with_jobs(self) -> Self {
        Self { tasks: 3 * self.slots, jobs: 10, ..self }
    }
}

/// What it cost to find the culprits.
#[derive(Debug)]
pub struct Contained {
    /// Processes that a culprit ended.
    pub deaths: usize,
    /// Processes in which every job ran as many tasks as its limit allows.
    pub at_limit: usize,
    /// From the start of the first process to the end of the last.
    pub took: Duration,
}

/// What came after one `kill -9`.
#[derive(Debug)]
pub struct Recovered {
    /// From the kill to the end of the last task.
    pub since_kill: Duration,
    /// From the earliest time at which the lease can have ended.
    pub since_lease: Duration,
}

impl Ground {
    /// A store, on which a restart ends every lease.
    pub fn new(aborter: &Path, store: &str) -> Self {
        Self { aborter: aborter.into(), store: store.to_owned(), options: Vec::new(), lease: Duration::ZERO }
    }

    /// With leases that run out; shorter than usual, because each restart waits for one.
    #[must_use]
    pub fn leased(mut self, is_long: bool) -> Self {
        self.lease = Duration::from_millis(if is_long { 3_500 } else { 2_000 });
        self.options.push(format!("lease-ms={}", self.lease.as_millis()));
        self
    }

    fn command(&self, what: &str, number: usize, more: &[String]) -> Command {
        let mut command = process::command(&self.aborter);
        command.args([&self.store, what, &number.to_string()]).args(&self.options).args(more);
        command
    }

    fn enqueue(&self, load: &Load) -> Result<()> {
        let mut options = vec![
            format!("culprits={}", load.culprits),
            format!("ends={}", load.ends),
            format!("ms={}", load.ms),
        ];
        if load.jobs > 0 {
            options.push(format!("jobs={}", load.jobs));
            options.push(format!("limit={}", load.slots / load.jobs));
        }
        let said = process::run(self.command("enqueue", load.tasks, &options))?;
        ensure!(said.code == Some(0), "the tasks could not be enqueued: {said:?}");
        Ok(())
    }

    fn run(&self, what: &str, load: &Load) -> Result<Said> {
        process::run(self.command(what, load.slots, &[]))
    }

    /// Runs tasks until the culprits among them are dead and all others done, and looks at each.
    ///
    /// # Errors
    /// If a task does not end as it should, an attempt is spent, a job goes beyond its limit, or it takes
    /// too many restarts.
    pub fn contain(&self, place: &str, load: &Load) -> Result<Contained> {
        self.enqueue(load)?;
        let began = Instant::now();
        let mut said = self.run("first", load)?;
        ensure!(said.code.is_none(), "the culprit ends the first worker: {said:?}");
        let mut contained = Contained { deaths: 0, at_limit: 0, took: Duration::ZERO };
        while said.code != Some(0) {
            ensure!(said.code.is_none(), "only a culprit ends a worker: {said:?}");
            contained.deaths += 1;
            ensure!(contained.deaths <= RESTARTS_MAX, "the culprit is never found");
            contained.at_limit += usize::from(is_at_limit(&said));
            said = self.run("run", load)?;
        }
        contained.at_limit += usize::from(is_at_limit(&said));
        contained.took = began.elapsed();

        let (done, dead) = (ended(&said, "done"), ended(&said, "dead"));
        ensure!(done.len() + dead.len() == load.tasks && dead.len() == load.culprits, "{said:?}");
        // The one attempt is the one that succeeded: none was spent on the crashes.
        ensure!(done.iter().all(|line| line.starts_with("done attempt 1 ")), "{done:#?}");
        ensure!(dead.iter().all(|line| line.contains("died with it")), "the reason is kept: {dead:?}");
        ensure!(
            load.jobs == 0 || contained.at_limit > 0,
            "no process had its jobs at their limits: {contained:?}"
        );
        println!("{place}: {load:?}: {contained:?}");
        Ok(contained)
    }

    /// Kills a process that runs all tasks, and lets another one do them.
    ///
    /// # Errors
    /// If a task does not end, or spends an attempt.
    pub fn recover(&self, place: &str, load: &Load) -> Result<Recovered> {
        let load = &Load { culprits: 0, ..*load };
        self.enqueue(load)?;
        let mut first = Process::start(self.command("first", load.slots, &[]))?;
        first.wait_for(START_LIMIT, |line| (line == "every slot is taken").then_some(()))?;
        let killed = SystemTime::now();
        first.kill()?;
        let said = self.run("run", load)?;
        let done = ended(&said, "done attempt 1 crashes 0 ");
        ensure!(said.code == Some(0) && done.len() == load.tasks, "all run again, once: {said:?}");
        let end = |line: &&str| line.split(' ').skip_while(|word| *word != "ended").nth(1)?.parse().ok();
        let last = Duration::from_millis(done.iter().filter_map(end).max().unwrap_or(0));
        let since_kill = last.saturating_sub(killed.duration_since(UNIX_EPOCH)?);
        // The last renewal was up to a heartbeat, an eighth of the lease, before the kill.
        let lease = self.lease.saturating_sub(self.lease / 8);
        let recovered = Recovered { since_kill, since_lease: since_kill.saturating_sub(lease) };
        println!("{place}: {load:?}: {recovered:?}");
        Ok(recovered)
    }
}

fn is_at_limit(said: &Said) -> bool {
    said.stdout.contains("every job is at its limit")
}

/// The lines about tasks that ended so.
fn ended<'a>(said: &'a Said, how: &str) -> Vec<&'a str> {
    said.stdout.lines().filter(|line| line.starts_with(how)).collect()
}
