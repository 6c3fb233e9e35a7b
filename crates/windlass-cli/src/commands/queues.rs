//! `windlass queues ls|why|pause|resume|purge`.

use clap::{Args, Subcommand};
use windlass_core::{Name, State, why::word};
use windlass_server::api::{PurgeRequest, PurgeResponse};

use crate::{
    backend::Backend,
    config::nearest,
    failure::{Exit, Failure},
    output::{Colour, table::Table, text},
    session::Session,
};

/// What to do with queues.
#[derive(Debug, Subcommand)]
pub enum QueuesCommand {
    /// List queues with how many tasks are in each state
    Ls,
    /// Say why the newest tasks of a queue wait, how many for each cause, and what would change it
    Why {
        /// The queue
        name: String,
    },
    /// Start no more tasks of a queue; running ones go on
    Pause {
        /// The queue
        name: String,
        /// Also if the queue has had no task yet
        #[arg(long)]
        create: bool,
    },
    /// Start tasks of a queue again
    Resume {
        /// The queue
        name: String,
    },
    /// Cancel a queue's waiting tasks and remove its dead ones; running ones go on
    Purge(PurgeArgs),
}

/// Arguments of `queues purge`.
#[derive(Debug, Args)]
pub struct PurgeArgs {
    /// The queue
    name: String,
    /// Only print how many tasks would be changed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Why; kept in the records of the cancelled tasks
    #[arg(long)]
    reason: Option<String>,
}

/// Runs it.
pub async fn run(session: &Session, command: QueuesCommand) -> anyhow::Result<Exit> {
    match command {
        QueuesCommand::Ls => list(session).await,
        QueuesCommand::Why { name } => why(session, &name).await,
        QueuesCommand::Pause { name, create } => set_paused(session, &name, Claims::Paused, create).await,
        QueuesCommand::Resume { name } => set_paused(session, &name, Claims::Resumed, false).await,
        QueuesCommand::Purge(args) => purge(session, args).await,
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

async fn why(session: &Session, name: &str) -> anyhow::Result<Exit> {
    let name = Name::new("queue", name).map_err(|error| Failure::usage(error.to_string()))?;
    let backend = session.backend().await?;
    let why = backend.queue_why(&name).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&why)?;
        return Ok(Exit::Done);
    }
    let waiting: u64 = WAITING.iter().map(|state| why.depth.count(*state).n).sum();
    if waiting == 0 {
        out.note("no task waits");
    } else if why.looked_at < waiting {
        let (looked_at, waiting) = (text::count(why.looked_at), text::tasks(waiting));
        out.note(format!("the newest {looked_at} of {waiting} that wait"));
    }
    for cause in &why.causes {
        out.line(format!("{:>6}  {}", text::count(cause.count), text::clean(&cause.sentence)))?;
        if let Some(hint) = &cause.hint {
            out.line(format!("{:>6}  hint: {}", "", text::clean(hint)))?;
        }
    }
    Ok(Exit::Done)
}

/// States in which a task waits.
const WAITING: [State; 4] = [State::Ready, State::Held, State::Waiting, State::Scheduled];

/// Whether a queue's tasks are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claims {
    Paused,
    Resumed,
}

async fn set_paused(session: &Session, name: &str, claims: Claims, create: bool) -> anyhow::Result<Exit> {
    let name = queue_name(name)?;
    let backend = session.backend_to_change().await?;
    if !create {
        // A mistyped name would pause nothing, and look as if it had.
        must_be_there(&*backend, &name, claims).await?;
    }
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

fn queue_name(text: &str) -> Result<Name, Failure> {
    Name::new("queue", text).map_err(|error| Failure::usage(error.to_string()))
}

/// Refuses a queue that has never had a task, and suggests the name that was probably meant.
async fn must_be_there(backend: &dyn Backend, name: &Name, claims: Claims) -> anyhow::Result<()> {
    let known = backend.queues().await?.queues;
    if known.iter().any(|queue| queue.queue == *name) {
        return Ok(());
    }
    let failure = Failure::new(Exit::NotFound, format!("queue {name} not found"));
    let near = nearest(name.as_str(), known.iter().map(|queue| queue.queue.as_str()));
    Err(match (near, claims) {
        (Some(near), _) => failure.hint(format!("did you mean {near:?}?")),
        (None, Claims::Paused) => failure.hint(format!(
            "to pause it before its first task: `windlass queues pause {} --create`",
            word(name)
        )),
        (None, Claims::Resumed) => failure.hint("`windlass queues ls` lists the queues"),
    }
    .into())
}

async fn purge(session: &Session, args: PurgeArgs) -> anyhow::Result<Exit> {
    let name = queue_name(&args.name)?;
    let backend = if args.dry_run { session.backend().await? } else { session.backend_to_change().await? };
    let out = session.out;
    let request = PurgeRequest { dry_run: args.dry_run, reason: args.reason };
    if args.dry_run || !args.yes {
        let looked = backend.purge_queue(&name, PurgeRequest { dry_run: true, ..request.clone() }).await?;
        if args.dry_run {
            backend.close().await?;
            return told(session, &looked);
        }
        let (waiting, dead) = (looked.cancelled.matched, looked.removed.matched);
        let question = format!(
            "Cancel {} that wait in queue {} and remove {} that are dead?",
            text::tasks(waiting),
            text::clean(name.as_str()),
            text::tasks(dead)
        );
        if waiting + dead > 0 && !out.confirm(&question)? {
            backend.close().await?;
            out.note("nothing changed");
            return Ok(Exit::Done);
        }
    }
    let mut done = backend.purge_queue(&name, request.clone()).await?;
    // One call changes a bounded number of tasks.
    while (done.cancelled.more || done.removed.more) && done.cancelled.changed + done.removed.changed > 0 {
        let next = backend.purge_queue(&name, request.clone()).await?;
        let is_stuck = next.cancelled.changed + next.removed.changed == 0;
        for (total, step) in [(&mut done.cancelled, next.cancelled), (&mut done.removed, next.removed)] {
            total.matched += step.changed;
            total.changed += step.changed;
            total.more = step.more;
        }
        if is_stuck {
            break;
        }
    }
    backend.close().await?;
    told(session, &done)
}

fn told(session: &Session, purge: &PurgeResponse) -> anyhow::Result<Exit> {
    let out = session.out;
    if out.is_json() {
        return out.json(purge).map(|()| Exit::Done);
    }
    let (cancelled, removed) = (&purge.cancelled, &purge.removed);
    if cancelled.dry_run {
        let more = if cancelled.more || removed.more { ", or more" } else { "" };
        out.line(format!(
            "{} would be cancelled and {} removed{more}",
            text::tasks(cancelled.matched),
            text::tasks(removed.matched)
        ))?;
        return Ok(Exit::Done);
    }
    out.line(format!(
        "{} cancelled, {} removed",
        text::tasks(cancelled.changed),
        text::tasks(removed.changed)
    ))?;
    for refusal in cancelled.refusals.iter().chain(&removed.refusals) {
        out.warn(format!("{} left: {}", refusal.id, refusal.error.message));
    }
    Ok(Exit::Done)
}
