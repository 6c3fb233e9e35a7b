//! A child process of a bench: it takes orders line by line and answers in JSON.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass::{
    handler::Registry,
    worker::{Worker, WorkerConfig},
};
use windlass_core::{Name, store::SharedStore};

use super::latency;
use crate::{
    args::Common,
    place::Place,
    rig::{HistoryArg, Noop, runtime},
};

/// The arguments of a member.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct MemberArgs {
    /// The schema of the store
    #[arg(long)]
    schema: String,
    /// How many tasks run at once
    #[arg(long, default_value_t = 1_000)]
    slots: u32,
    /// Most tasks of one claim
    #[arg(long)]
    claim_batch: Option<u32>,
    /// Pause between two polls of an idle worker
    #[arg(long)]
    poll_ms: Option<u64>,
    /// Without LISTEN
    #[arg(long)]
    deaf: bool,
    /// Run no worker: enqueue so many tasks, a few milliseconds apart, each with the time of its call in
    /// the payload
    #[arg(long)]
    trickle: Option<usize>,
    /// Pause between two of these tasks
    #[arg(long, default_value_t = 5)]
    spacing_ms: u64,
}

/// A worker with one handler that does nothing. It prints READY, starts at GO, stops at STOP and prints
/// its figures.
pub(super) fn run(common: &Common, args: &MemberArgs) -> anyhow::Result<()> {
    let Place::Server(server) = &common.place else { anyhow::bail!("a member needs --store postgres://…") };
    runtime()?.block_on(async {
        let store = server.open_with(&args.schema, HistoryArg::Kept, !args.deaf).await?;
        if let Some(tasks) = args.trickle {
            return trickle(&store, tasks, std::time::Duration::from_millis(args.spacing_ms)).await;
        }
        let mut registry = Registry::new();
        registry.insert(Name::new("kind", "noop")?, Arc::new(Noop))?;
        let (took, mut pickups) = tokio::sync::mpsc::unbounded_channel();
        registry.insert(Name::new("kind", "report")?, Arc::new(latency::ReportStamped { took }))?;
        let mut config = WorkerConfig { slots: args.slots, ..WorkerConfig::default() };
        if let Some(size) = args.claim_batch {
            config.claim_batch = windlass::worker::ClaimBatch::AtMost(size);
        }
        if let Some(ms) = args.poll_ms {
            config.poll_interval = std::time::Duration::from_millis(ms);
            config.poll_interval_max = config.poll_interval;
        }
        let worker = Worker::new(store.clone(), registry, config)?;
        let handle = worker.handle();
        say(&json!("READY"))?;
        let mut lines = lines();
        lines.recv().await.context("no GO")?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(worker.run(async move {
            let _ = stopped.await;
        }));
        // Every other line asks for figures; the end of the input stops the worker.
        while lines.recv().await.is_some() {
            let status = handle.status();
            let times: Vec<f64> = std::iter::from_fn(|| pickups.try_recv().ok()).collect();
            say(&json!({"settled": status.settled, "claims": status.claims, "pickups_ms": times}))?;
        }
        drop(stop);
        running.await??;
        store.close().await?;
        Ok(())
    })
}

/// Enqueues one task after another, as a service on another machine than the workers does.
async fn trickle(store: &SharedStore, tasks: usize, spacing: std::time::Duration) -> anyhow::Result<()> {
    say(&json!("READY"))?;
    lines().recv().await.context("no GO")?;
    for _ in 0..tasks {
        tokio::time::sleep(spacing).await;
        store.enqueue(vec![latency::stamped()?]).await?;
    }
    store.close().await?;
    say(&json!("DONE"))
}

fn say(what: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    Ok(out.flush()?)
}

/// Lines of the input, read on a thread of their own.
fn lines() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (send, lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The bench's end of a member; dropping it ends the member.
pub(super) struct Member {
    child: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Member {
    pub(super) fn start(url: &str, args: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["member", "--store", url])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let words = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("no output of a member")?);
        let mut member = Self { child, words, answers };
        member.answer()?;
        Ok(member)
    }

    pub(super) fn say(&mut self, line: &str) -> anyhow::Result<()> {
        let words = self.words.as_mut().context("the member has ended")?;
        writeln!(words, "{line}")?;
        Ok(words.flush()?)
    }

    /// Waits for the next line.
    pub(super) fn listen(&mut self) -> anyhow::Result<Value> {
        self.answer()
    }

    pub(super) fn ask(&mut self) -> anyhow::Result<Value> {
        self.say("?")?;
        self.answer()
    }

    fn answer(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        anyhow::ensure!(self.answers.read_line(&mut line)? > 0, "a member ended early");
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        drop(self.words.take());
        if self.child.wait().is_err() {
            let _ = self.child.kill();
        }
    }
}
