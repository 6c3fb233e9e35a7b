//! `windlass workers ls`.

use clap::Subcommand;

use crate::{
    failure::Exit,
    output::{Colour, table::Table, text},
    session::Session,
};

/// What to do with workers.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List workers, also those that ended in the last day
    Ls,
}

/// Runs it.
pub async fn run(session: &Session, command: &WorkersCommand) -> anyhow::Result<Exit> {
    let WorkersCommand::Ls = command;
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
    let mut table =
        Table::new(&["ID", "HOST", "PID", "VERSION", "STATE", "RUNNING", "SLOTS", "SEEN", "KINDS"]);
    for worker in &workers.workers {
        let state = match (worker.live, worker.draining) {
            (true, false) => out.paint(Colour::Green, "live"),
            (true, true) => out.paint(Colour::Yellow, "draining"),
            (false, _) => out.paint(Colour::Dim, "gone"),
        };
        let kinds: Vec<&str> = worker.kinds.iter().map(windlass_core::Name::as_str).collect();
        table.row(vec![
            text::clean(&worker.id),
            text::clean(&worker.host),
            worker.pid.to_string(),
            text::clean(&worker.version),
            state,
            worker.in_flight.to_string(),
            worker.slots.to_string(),
            text::ago(worker.renewed_at),
            text::clean(&kinds.join(", ")),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}
