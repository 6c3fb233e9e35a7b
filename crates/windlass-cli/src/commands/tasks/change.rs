//! `windlass tasks cancel`, `windlass tasks retry` and `windlass tasks rm`: by id, or by filter with a
//! confirmation.

use std::time::Duration;

use clap::Args;
use windlass_core::TaskId;
use windlass_server::api::{
    CancelRequest, ChangeResponse, RetryRequest, RunAction, RunPreview, RunRequest, TaskFilter,
};

use super::{
    super::runs,
    filter::{FLAGS, FilterArgs},
};
use crate::{
    backend::{Answer, Backend},
    failure::{Exit, Failure},
    output::{Output, text},
    session::Session,
};

/// How the user confirms a bulk change.
#[derive(Debug, Clone, Copy, Args)]
pub struct BulkArgs {
    /// Only print how many tasks would be changed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Spread the changes evenly over this time, so that a service that has just recovered is not
    /// overloaded
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    over: Option<Duration>,
    /// Do not wait for the end; `windlass runs` shows the progress
    #[arg(long)]
    detach: bool,
}

/// Arguments of `tasks cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The tasks; or choose them with the flags below
    #[arg(value_name = "ID")]
    ids: Vec<TaskId>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    bulk: BulkArgs,
    /// Why; kept in the tasks' records
    #[arg(long)]
    reason: Option<String>,
}

/// Arguments of `tasks retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The tasks; or choose them with the flags below
    #[arg(value_name = "ID")]
    ids: Vec<TaskId>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    bulk: BulkArgs,
}

/// Arguments of `tasks rm`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The tasks; or choose them with the flags below
    #[arg(value_name = "ID")]
    ids: Vec<TaskId>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    bulk: BulkArgs,
}

/// Runs `cancel`.
pub async fn cancel(session: &Session, args: CancelArgs) -> anyhow::Result<Exit> {
    let filter = TaskFilter::from(args.filter);
    check_choice(&args.ids, &filter)?;
    check_over(&args.ids, args.bulk)?;
    let backend = backend(session, args.bulk).await?;
    if args.ids.is_empty() {
        let action = RunAction::Cancel;
        let request = RunRequest { action, filter, reason: args.reason, ..RunRequest::default() };
        return bulk(session, &*backend, request, args.bulk).await;
    }
    let mut changes = Changes::new(session);
    for id in args.ids {
        changes.add(id, backend.cancel(id, CancelRequest { reason: args.reason.clone() }).await, changed)?;
    }
    backend.close().await?;
    Ok(changes.exit)
}

/// Runs `retry`.
pub async fn retry(session: &Session, args: RetryArgs) -> anyhow::Result<Exit> {
    let filter = TaskFilter::from(args.filter);
    check_choice(&args.ids, &filter)?;
    let backend = backend(session, args.bulk).await?;
    if args.ids.is_empty() {
        let request = RunRequest { action: RunAction::Retry, filter, ..RunRequest::default() };
        return bulk(session, &*backend, request, args.bulk).await;
    }
    let mut changes = Changes::new(session);
    let total = args.ids.len() as u64;
    let over_ms = args.bulk.over.map(|over| over.as_millis() as u64);
    for (place, id) in args.ids.into_iter().enumerate() {
        let delay_ms = over_ms.map(|over| over * place as u64 / total);
        changes.add(id, backend.retry(id, RetryRequest { delay_ms }).await, changed)?;
    }
    backend.close().await?;
    Ok(changes.exit)
}

/// The backend. A dry run changes nothing, so it does not print where a change goes.
async fn backend(session: &Session, args: BulkArgs) -> anyhow::Result<Box<dyn Backend>> {
    if args.dry_run { session.backend().await } else { session.backend_to_change().await }
}

/// Runs `rm`.
pub async fn remove(session: &Session, args: RemoveArgs) -> anyhow::Result<Exit> {
    let filter = TaskFilter::from(args.filter);
    check_choice(&args.ids, &filter)?;
    check_over(&args.ids, args.bulk)?;
    let backend = backend(session, args.bulk).await?;
    if args.ids.is_empty() {
        let request = RunRequest { action: RunAction::Remove, filter, ..RunRequest::default() };
        return bulk(session, &*backend, request, args.bulk).await;
    }
    let mut changes = Changes::new(session);
    for id in args.ids {
        changes.add(id, backend.remove(id).await, |out, removed| {
            if out.is_json() {
                out.json(removed)
            } else {
                Ok(out.line(format!("{} removed", removed.removed))?)
            }
        })?;
    }
    backend.close().await?;
    Ok(changes.exit)
}

/// Prints one changed task: its state, and the task that it repeats.
fn changed(out: Output, change: &ChangeResponse) -> anyhow::Result<()> {
    if out.is_json() {
        return out.json(change);
    }
    let repeats = change.repeats.map_or_else(String::new, |id| format!("  repeats {id}"));
    Ok(out.line(format!("{} {}{repeats}", change.id, text::state(out, change.state)))?)
}

fn check_choice(ids: &[TaskId], filter: &TaskFilter) -> Result<(), Failure> {
    match (ids.is_empty(), filter.is_empty()) {
        (true, true) => Err(Failure::usage(format!("which tasks? Name ids, or at least one of {FLAGS}"))),
        (false, false) => Err(Failure::usage("name ids or choose with flags, not both")),
        _ => Ok(()),
    }
}

/// Tasks that are named are cancelled and removed at once.
fn check_over(ids: &[TaskId], args: BulkArgs) -> Result<(), Failure> {
    if !ids.is_empty() && args.over.is_some() {
        return Err(Failure::usage("--over needs tasks that are chosen with flags, such as --id"));
    }
    Ok(())
}

/// The results for tasks that were named one by one. The first failure decides the exit code; the other
/// tasks are still changed.
struct Changes<'a> {
    session: &'a Session,
    exit: Exit,
}

impl<'a> Changes<'a> {
    fn new(session: &'a Session) -> Self {
        Self { session, exit: Exit::Done }
    }

    fn add<T>(
        &mut self,
        id: TaskId,
        answer: Answer<T>,
        show: impl FnOnce(Output, &T) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match answer {
            Ok(change) => show(self.session.out, &change),
            Err(error) => {
                let mut failure = Failure::from(error);
                if !failure.message.contains(&id.to_string()) {
                    failure.message = format!("{id}: {}", failure.message);
                }
                crate::output::report(&failure);
                if self.exit == Exit::Done {
                    self.exit = failure.exit;
                }
                Ok(())
            }
        }
    }
}

async fn bulk(
    session: &Session,
    backend: &dyn Backend,
    request: RunRequest,
    args: BulkArgs,
) -> anyhow::Result<Exit> {
    let out = session.out;
    let request = RunRequest { over_ms: args.over.map(|over| over.as_millis() as u64), ..request };
    if args.dry_run || !args.yes {
        let looked = backend.preview_run(request.clone()).await?;
        let about = format!("{}{}", text::tasks(looked.matched), if looked.more { " or more" } else { "" });
        if args.dry_run {
            backend.close().await?;
            return preview(out, &looked, &format!("{about} would be {}", runs::done(request.action)));
        }
        if looked.matched > 0 && !out.confirm(&format!("{} {about}?", ask(request.action)))? {
            backend.close().await?;
            out.note("nothing changed");
            return Ok(Exit::Done);
        }
    }
    let mut run = backend.start_run(request).await?;
    if args.detach {
        backend.close().await?;
        if out.is_json() {
            out.json(&run)?;
        } else {
            out.line(format!("run {} started", run.id))?;
            out.tip(format!(
                "`windlass runs show {0}` shows its progress, `windlass runs stop {0}` stops it",
                run.id
            ));
        }
        return Ok(Exit::Done);
    }
    run = runs::follow(out, backend, run).await?;
    backend.close().await?;
    runs::report(out, &run)
}

/// Prints what a run would do.
fn preview(out: Output, looked: &RunPreview, sentence: &str) -> anyhow::Result<Exit> {
    if out.is_json() {
        out.json(looked)?;
        return Ok(Exit::Done);
    }
    out.line(sentence)?;
    for task in &looked.sample {
        out.tip(format!("  such as {} {} {}", task.id, text::clean(task.kind.as_str()), task.state));
    }
    Ok(Exit::Done)
}

/// The question before a run.
fn ask(action: RunAction) -> &'static str {
    match action {
        RunAction::Cancel => "Cancel",
        RunAction::Retry => "Retry",
        RunAction::Remove => "Remove for good",
    }
}
