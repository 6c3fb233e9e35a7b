//! `windlass tasks …`.

pub mod change;
pub mod export;
pub mod filter;
pub mod ls;
pub mod show;
pub mod wait;

use clap::{Args, Subcommand};
use windlass_core::TaskId;

use crate::{failure::Exit, session::Session};

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// List tasks, newest first; dead ones grouped by error
    Ls(ls::LsArgs),
    /// Write all tasks that match to stdout, as CSV or lines of JSON
    Export(export::ExportArgs),
    /// Show everything about a task
    Show(IdArgs),
    /// Say why a task is not running
    Why(IdArgs),
    /// Cancel tasks, by id or by filter; running ones are asked to end
    Cancel(change::CancelArgs),
    /// Give dead tasks new attempts, by id or by filter; a done or cancelled task is repeated as a new
    /// task, by id only
    Retry(change::RetryArgs),
    /// Remove dead tasks for good, by id or by filter
    Rm(change::RemoveArgs),
    /// Wait until tasks have ended; exit code 6 if one ended dead or cancelled
    Wait(wait::WaitArgs),
}

/// One task.
#[derive(Debug, Args)]
pub struct IdArgs {
    /// The task
    pub id: TaskId,
}

/// Runs it.
pub async fn run(session: &Session, command: TasksCommand) -> anyhow::Result<Exit> {
    match command {
        TasksCommand::Ls(args) => ls::run(session, args).await,
        TasksCommand::Export(args) => export::run(session, args).await,
        TasksCommand::Show(args) => show::show(session, args.id).await,
        TasksCommand::Why(args) => show::why(session, args.id).await,
        TasksCommand::Cancel(args) => change::cancel(session, args).await,
        TasksCommand::Retry(args) => change::retry(session, args).await,
        TasksCommand::Rm(args) => change::remove(session, args).await,
        TasksCommand::Wait(args) => wait::run(session, args).await,
    }
}
