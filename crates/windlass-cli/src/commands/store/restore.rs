//! `windlass restore FILE`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windlass_sqlite::{OpenError, RestoreOptions};

use crate::{
    failure::{Exit, Failure},
    output::text,
    session::Session,
    store,
};

/// Arguments of `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The copy that `backup` wrote
    file: PathBuf,
    /// Leave every queue paused, so that you can look before any task runs
    #[arg(long)]
    hold: bool,
    /// Replace an existing store
    #[arg(long)]
    force: bool,
}

/// Runs it.
pub async fn run(session: &Session, args: RestoreArgs) -> anyhow::Result<Exit> {
    let to = super::backup::file(&session.settings, "restored")?.ok_or_else(|| {
        Failure::usage("a store in memory cannot be restored").hint("name a file with --store")
    })?;
    if !args.file.is_file() {
        return Err(Failure::new(Exit::NotFound, format!("no copy at {}", args.file.display())).into());
    }
    let options = RestoreOptions { hold: args.hold, overwrite: args.force };
    let (shown, from) = (to.display().to_string(), args.file.display().to_string());
    let restored =
        tokio::task::spawn_blocking(move || windlass_sqlite::restore(&args.file, &to, options)).await?;
    let restored = restored.map_err(|error| match error {
        OpenError::Exists(path) => Failure::new(Exit::Refused, format!("{} exists", path.display()))
            .hint(format!("`windlass restore {from} --force` replaces it")),
        error => store::sqlite::failure(error),
    })?;
    if session.out.is_json() {
        session.out.json(
            &json!({"store": shown, "handed_back": restored.handed_back, "queues_held": restored.queues_held}),
        )?;
        return Ok(Exit::Done);
    }
    session.out.note(format!(
        "{shown} restored; {} that ran when the copy was made will run again",
        text::tasks(restored.handed_back)
    ));
    if restored.queues_held > 0 {
        session.out.note(format!(
            "queues left paused: {}; `windlass queues resume NAME` lets one run",
            text::count(restored.queues_held)
        ));
    }
    Ok(Exit::Done)
}
