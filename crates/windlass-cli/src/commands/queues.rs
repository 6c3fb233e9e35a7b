//! `windlass queues ls|pause|resume`.

use clap::Subcommand;
use windlass_core::{Name, State};

use crate::{
    failure::{Exit, Failure},
    output::{Colour, table::Table, text},
    session::Session,
};

/// What to do with queues.
#[derive(Debug, Subcommand)]
pub enum QueuesCommand {
    /// List queues with how many tasks are in each state
    Ls,
    /// Stop starting tasks of a queue; those that run go on
    Pause {
        /// The queue
        name: String,
    },
    /// Start tasks of a queue again
    Resume {
        /// The queue
        name: String,
    },
}

/// Runs it.
pub async fn run(session: &Session, command: QueuesCommand) -> anyhow::Result<Exit> {
    match command {
        QueuesCommand::Ls => list(session).await,
        QueuesCommand::Pause { name } => set_paused(session, &name, Claims::Paused).await,
        QueuesCommand::Resume { name } => set_paused(session, &name, Claims::Resumed).await,
    }
}

/// The states in the order of the columns.
const COLUMNS: [State; 6] =
    [State::Ready, State::Running, State::Scheduled, State::Waiting, State::Held, State::Dead];

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let queues = backend.queues().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&queues)?;
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["QUEUE", "KIND", "READY", "RUNNING", "SCHEDULED", "WAITING", "HELD", "DEAD", "CLAIMS"]);
    for queue in &queues.queues {
        let claims = if queue.paused { out.paint(Colour::Yellow, "paused") } else { "on".to_owned() };
        for lane in &queue.kinds {
            let depth = lane.depth;
            let mut row = vec![text::clean(queue.queue.as_str()), text::clean(lane.kind.as_str())];
            row.extend(COLUMNS.map(|state| depth.count(state).to_string()));
            row.push(claims.clone());
            table.row(row);
        }
        if queue.kinds.is_empty() {
            let mut row = vec![text::clean(queue.queue.as_str()), "-".to_owned()];
            row.extend((0..6).map(|_| "0".to_owned()));
            row.push(claims);
            table.row(row);
        }
    }
    if queues.queues.is_empty() {
        out.note("no queues yet: the first task makes one");
        return Ok(Exit::Done);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

/// Whether tasks of a queue are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claims {
    Paused,
    Resumed,
}

async fn set_paused(session: &Session, name: &str, claims: Claims) -> anyhow::Result<Exit> {
    let name = Name::new("queue", name).map_err(|error| Failure::usage(error.to_string()))?;
    let backend = session.backend().await?;
    let change = backend.set_queue_paused(&name, claims == Claims::Paused).await?;
    backend.close().await?;
    if session.out.is_json() {
        session.out.json(&change)?;
        return Ok(Exit::Done);
    }
    let verb = if change.paused { "paused" } else { "resumed" };
    let again = if change.changed { "" } else { " already" };
    session.out.note(format!("queue {}{again} {verb}", text::clean(change.queue.as_str())));
    Ok(Exit::Done)
}
