//! `windlass tasks ls`.

use clap::Args;
use windlass_core::{State, TaskId, store::PAGE_MAX};
use windlass_server::api::{TaskFilter, TaskPage, TaskView};

use super::filter::FilterArgs;
use crate::{
    backend::Backend,
    failure::Exit,
    output::{Output, table::Table, text},
    session::Session,
};

/// Width of an error in a list on a terminal.
const ERROR_WIDTH: usize = 60;
/// Most pages that are read for one list. A page may be short, because one call never scans a whole
/// history.
const PAGES_MAX: usize = 100;

/// Arguments of `tasks ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_MAX)))]
    limit: u32,
    /// Only tasks after this cursor: the one printed at the end of the page before
    #[arg(long, value_name = "CURSOR")]
    after: Option<TaskId>,
    /// List dead tasks one by one instead of grouping them by error
    #[arg(long)]
    each: bool,
}

/// Runs it.
pub async fn run(session: &Session, args: LsArgs) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let filter = TaskFilter::from(args.filter);
    let groups = filter.state == Some(State::Dead) && !args.each && args.after.is_none();
    if groups {
        let dead = backend.dead(&filter).await?;
        backend.close().await?;
        return show_groups(session.out, &dead);
    }
    let page = read(&*backend, &filter, args.after, args.limit).await?;
    backend.close().await?;
    show_page(session.out, &page)
}

/// Reads until the list is full or there are no more tasks.
async fn read(
    backend: &dyn Backend,
    filter: &TaskFilter,
    after: Option<TaskId>,
    limit: u32,
) -> anyhow::Result<TaskPage> {
    let mut all = TaskPage { tasks: Vec::new(), next: after };
    for _ in 0..PAGES_MAX {
        let left = limit.saturating_sub(all.tasks.len() as u32);
        if left == 0 {
            break;
        }
        let page = backend.tasks(filter, all.next, left).await?;
        all.tasks.extend(page.tasks);
        all.next = page.next;
        if all.next.is_none() {
            break;
        }
    }
    Ok(all)
}

fn show_page(out: Output, page: &TaskPage) -> anyhow::Result<Exit> {
    if out.is_json() {
        out.json(page)?;
        return Ok(Exit::Done);
    }
    if page.tasks.is_empty() {
        out.note("no such tasks");
    } else {
        let mut table = Table::new(&["ID", "STATE", "KIND", "QUEUE", "ATTEMPT", "ENQUEUED", "NOTE"]);
        for task in &page.tasks {
            table.row(vec![
                task.id.to_string(),
                text::state(out, task.state),
                text::clean(task.kind.as_str()),
                text::clean(task.queue.as_str()),
                format!("{}/{}", task.attempt, task.max_attempts),
                text::time(out, task.enqueued_at),
                note(out, task),
            ]);
        }
        for line in table.lines() {
            out.line(line)?;
        }
    }
    if let Some(next) = page.next {
        out.note(format!("there are more: --after {next}"));
    }
    Ok(Exit::Done)
}

/// The note of a task: its error, when it is due, or its progress.
fn note(out: Output, task: &TaskView) -> String {
    let width = if out.is_terminal() { ERROR_WIDTH } else { usize::MAX };
    let due = task.due_at.filter(|_| task.state == State::Scheduled).map(|due| text::time(out, due));
    match (due, &task.error, &task.progress) {
        (Some(due), Some(error), _) => text::cut(&format!("due {due}: {error}"), width),
        (Some(due), None, _) => format!("due {due}"),
        (None, Some(error), _) if task.state != State::Done => text::cut(error, width),
        (None, _, Some(progress)) if task.state == State::Running => text::cut(progress, width),
        _ => String::new(),
    }
}

fn show_groups(out: Output, dead: &windlass_server::api::DeadGroups) -> anyhow::Result<Exit> {
    if out.is_json() {
        out.json(dead)?;
        return Ok(Exit::Done);
    }
    if dead.groups.is_empty() {
        out.note("no dead tasks");
        return Ok(Exit::Done);
    }
    let width = if out.is_terminal() { ERROR_WIDTH } else { usize::MAX };
    let mut table = Table::new(&["COUNT", "KIND", "LAST", "EXAMPLE", "ERROR"]);
    for group in &dead.groups {
        table.row(vec![
            text::count(group.count),
            text::clean(group.kind.as_str()),
            group.last_ended_at.map_or_else(|| "-".to_owned(), |at| text::time(out, at)),
            group.example.to_string(),
            text::cut(&group.error, width),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    if dead.more {
        out.note(format!("only the newest {} were looked at", text::tasks(dead.looked_at)));
    }
    out.tip("one by one: `windlass tasks ls --state dead --each`; again: `windlass tasks retry --state dead --over 10m`");
    Ok(Exit::Done)
}
