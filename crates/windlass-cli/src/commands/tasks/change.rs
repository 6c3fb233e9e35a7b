//! `windlass tasks cancel`, `windlass tasks retry` and `windlass tasks rm`: by id, or by filter with a
//! confirmation.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use windlass_core::TaskId;
use windlass_server::api::{
    BulkRequest, BulkResponse, CancelRequest, ChangeResponse, RetryRequest, TaskFilter,
};

use super::filter::{FLAGS, FilterArgs};
use crate::{
    backend::{Answer, Backend},
    failure::{Exit, Failure},
    output::{Output, text},
    session::Session,
};

/// Most calls of one bulk command. Each call changes up to a hundred thousand tasks.
const CALLS_MAX: usize = 1_000;

/// How the user confirms a bulk change.
#[derive(Debug, Clone, Copy, Args)]
pub struct BulkArgs {
    /// Only print how many tasks would be changed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
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
    /// Spread the starts evenly over this time, so that a service that has just recovered is not
    /// overloaded
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    over: Option<Duration>,
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

/// What a bulk command does, and the words for it.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Cancel,
    Retry,
    Remove,
}

impl Verb {
    fn ask(self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::Retry => "Retry",
            Self::Remove => "Remove for good",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled or asked to end",
            Self::Retry => "made ready again",
            Self::Remove => "removed",
        }
    }

    async fn call(self, backend: &dyn Backend, request: BulkRequest) -> Answer<BulkResponse> {
        match self {
            Self::Cancel => backend.cancel_many(request).await,
            Self::Retry => backend.retry_many(request).await,
            Self::Remove => backend.remove_many(request).await,
        }
    }
}

/// Runs `cancel`.
pub async fn cancel(session: &Session, args: CancelArgs) -> anyhow::Result<Exit> {
    let filter = TaskFilter::from(args.filter);
    check_choice(&args.ids, &filter)?;
    let backend = backend(session, args.bulk).await?;
    if args.ids.is_empty() {
        let request = BulkRequest { filter, reason: args.reason, ..BulkRequest::default() };
        return bulk(session, &*backend, Verb::Cancel, request, args.bulk).await;
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
    let over_ms = args.over.map(|over| over.as_millis() as u64);
    if args.ids.is_empty() {
        let request = BulkRequest { filter, over_ms, ..BulkRequest::default() };
        return bulk(session, &*backend, Verb::Retry, request, args.bulk).await;
    }
    let mut changes = Changes::new(session);
    let total = args.ids.len() as u64;
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
    let backend = backend(session, args.bulk).await?;
    if args.ids.is_empty() {
        let request = BulkRequest { filter, ..BulkRequest::default() };
        return bulk(session, &*backend, Verb::Remove, request, args.bulk).await;
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
    verb: Verb,
    request: BulkRequest,
    args: BulkArgs,
) -> anyhow::Result<Exit> {
    let out = session.out;
    if args.dry_run || !args.yes {
        let looked = verb.call(backend, BulkRequest { dry_run: true, ..request.clone() }).await?;
        let about = format!("{}{}", text::tasks(looked.matched), if looked.more { " or more" } else { "" });
        if args.dry_run {
            backend.close().await?;
            return if out.is_json() {
                out.json(&looked).map(|()| Exit::Done)
            } else {
                out.line(format!("{about} would be {}", verb.done()))?;
                Ok(Exit::Done)
            };
        }
        if looked.matched > 0 && !out.confirm(&format!("{} {about}?", verb.ask()))? {
            backend.close().await?;
            out.note("nothing changed");
            return Ok(Exit::Done);
        }
    }
    let total = change_all(session, backend, verb, request).await?;
    backend.close().await?;
    if out.is_json() {
        out.json(&json!({"matched": total.matched, "changed": total.changed, "refused": total.refused,
            "refusals": total.refusals}))?;
        return Ok(Exit::Done);
    }
    out.line(format!("{} {}", text::tasks(total.changed), verb.done()))?;
    if total.refused > 0 {
        out.warn(format!("{} not changed", text::tasks(total.refused)));
        for refusal in &total.refusals {
            out.note(format!("  {}: {}", refusal.id, text::clean(&refusal.error.message)));
        }
    }
    Ok(Exit::Done)
}

/// Calls until nothing is left: one call changes a bounded number of tasks.
async fn change_all(
    session: &Session,
    backend: &dyn Backend,
    verb: Verb,
    request: BulkRequest,
) -> anyhow::Result<BulkResponse> {
    let mut total = BulkResponse::default();
    for _ in 0..CALLS_MAX {
        let answer = verb.call(backend, request.clone()).await?;
        total.matched += answer.matched;
        total.changed += answer.changed;
        total.refused += answer.refused;
        if total.refusals.is_empty() {
            total.refusals = answer.refusals;
        }
        if !answer.more || answer.changed == 0 {
            break;
        }
        session.out.progress(format!("{} so far", text::tasks(total.changed)));
    }
    session.out.end_progress();
    Ok(total)
}
