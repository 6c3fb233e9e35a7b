//! `windlass workers ls|set`.

use clap::Subcommand;
use windlass_core::WorkerId;
use windlass_server::api::{WorkerRequest, WorkerState, WorkerView};

use crate::{
    failure::{Exit, Failure},
    output::{Colour, Output, table::Table, text},
    session::Session,
};

/// Width of the list of kinds in the table; `--json` prints them all.
const KINDS_WIDTH: usize = 24;

/// What to do with workers.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List workers with their running tasks, their slots in use and why; also workers that ended in the
    /// last day
    Ls,
    /// Change how many tasks a running worker may run at once
    Set {
        /// The worker, such as w7
        id: String,
        /// How many tasks it may run at once, 1 to 100000; running tasks go on
        #[arg(long, value_name = "N")]
        slots: u32,
    },
}

/// Runs it.
pub async fn run(session: &Session, command: &WorkersCommand) -> anyhow::Result<Exit> {
    match command {
        WorkersCommand::Ls => list(session).await,
        WorkersCommand::Set { id, slots } => set(session, id, *slots).await,
    }
}

async fn set(session: &Session, id: &str, slots: u32) -> anyhow::Result<Exit> {
    let id: WorkerId = id.parse().map_err(|error: windlass_core::Error| Failure::usage(error.to_string()))?;
    let backend = session.backend_to_change().await?;
    let changed = backend.set_worker(id, WorkerRequest { slots }).await;
    backend.close().await?;
    let worker = changed.map_err(|error| {
        let failure = Failure::from(error);
        if matches!(failure.exit, Exit::NotFound | Exit::Refused) {
            failure.hint("`windlass workers ls` shows who is live")
        } else {
            failure
        }
    })?;
    if session.out.is_json() {
        session.out.json(&worker)?;
        return Ok(Exit::Done);
    }
    session.out.note(format!("worker {id} has {slots} slots from its next heartbeat on"));
    Ok(Exit::Done)
}

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let workers = backend.workers().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&workers)?;
        return Ok(Exit::Done);
    }
    if workers.workers.is_empty() {
        out.note("no workers: start one with `windlass up`");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        "ID", "STATE", "RUNNING", "FREE", "MEM", "FACTOR", "REASON", "SEEN", "VERSION", "HOST", "PID",
        "KINDS",
    ]);
    for worker in &workers.workers {
        table.row(row(out, worker));
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

fn row(out: Output, worker: &WorkerView) -> Vec<String> {
    let state = match worker.state {
        WorkerState::Live => out.paint(Colour::Green, "live"),
        WorkerState::Draining => out.paint(Colour::Yellow, "draining"),
        WorkerState::Stale => out.paint(Colour::Red, "stale"),
        WorkerState::Gone => out.paint(Colour::Dim, "gone"),
    };
    let reason = if worker.reason.is_empty() { "-".to_owned() } else { text::clean(&worker.reason) };
    let kinds: Vec<&str> = worker.kinds.iter().map(windlass_core::Name::as_str).collect();
    vec![
        text::clean(&worker.worker_id),
        state,
        format!("{}/{}", worker.in_flight, worker.max_capacity),
        worker.available_capacity.to_string(),
        format!("{:.0}%", worker.memory_usage * 100.0),
        format!("{:.2}", worker.factor),
        reason,
        text::ago(worker.renewed_at),
        text::clean(&worker.version),
        text::clean(&worker.host),
        worker.pid.to_string(),
        text::cut(&kinds.join(", "), KINDS_WIDTH),
    ]
}
