//! `windlass runs ls|show|stop`, and the progress of a run that a command has started.

use std::time::Duration;

use clap::Subcommand;
use windlass_core::why::human;
use windlass_server::api::{RunAction, RunState, RunView, TaskFilter};

use crate::{
    backend::Backend,
    failure::{Exit, Failure},
    output::{Colour, Output, table::Table, text},
    session::Session,
};

/// The first pause between two looks at a run; each is twice as long as the one before.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// The longest pause between two looks.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Letters of the bar.
const BAR: u64 = 30;

/// What to do with bulk runs.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List the newest runs with their progress
    #[command(alias = "list")]
    Ls,
    /// Show everything about a run
    Show {
        /// Its number
        id: u64,
    },
    /// Stop a run: what it has not changed stays as it is
    Stop {
        /// Its number
        id: u64,
    },
}

/// Runs it.
pub async fn run(session: &Session, command: RunsCommand) -> anyhow::Result<Exit> {
    match command {
        RunsCommand::Ls => list(session).await,
        RunsCommand::Show { id } => show(session, id).await,
        RunsCommand::Stop { id } => stop(session, id).await,
    }
}

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let runs = backend.runs().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&runs)?;
        return Ok(Exit::Done);
    }
    if runs.runs.is_empty() {
        out.note("no bulk runs; `windlass tasks retry --state dead --over 10m` starts one");
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["ID", "ACTION", "STATE", "CHANGED", "OF", "REFUSED", "OVER", "STARTED", "BY"]);
    for run in &runs.runs {
        table.row(vec![
            run.id.to_string(),
            action(run.action).to_owned(),
            state(out, run.state),
            text::count(run.changed),
            matched(run),
            text::count(run.refused),
            over(run),
            text::time(out, run.started_at),
            text::clean(&run.by),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

async fn show(session: &Session, id: u64) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let run = backend.run(id).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&run)?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![
        ("run", run.id.to_string()),
        ("action", action(run.action).to_owned()),
        ("tasks", chosen(&run.filter)),
        ("over", over(&run)),
        ("started", format!("{} by {}", text::time(out, run.started_at), text::clean(&run.by))),
        ("state", state(out, run.state)),
        ("progress", progress(&run)),
        ("refused", text::count(run.refused)),
        ("updated", text::time(out, run.updated_at)),
    ];
    if let Some(by) = &run.stopped_by {
        lines.push(("stopped by", text::clean(by)));
    }
    if let Some(failure) = &run.failure {
        lines.push(("failure", text::clean(&failure.message)));
    }
    for (name, value) in lines {
        out.line(format!("{name:<11} {value}"))?;
    }
    refusals(out, &run);
    Ok(Exit::Done)
}

async fn stop(session: &Session, id: u64) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let run = backend.stop_run(id).await?;
    backend.close().await?;
    if session.out.is_json() {
        session.out.json(&run)?;
        return Ok(Exit::Done);
    }
    session.out.line(format!(
        "run {id} stopped: {} of {} changed",
        text::count(run.changed),
        matched(&run)
    ))?;
    Ok(Exit::Done)
}

/// Shows the progress of a run until it has ended. Without a server this process works it off meanwhile.
pub async fn follow(out: Output, backend: &dyn Backend, mut run: RunView) -> anyhow::Result<RunView> {
    let id = run.id;
    if !run.has_ended() && run.over_ms > 0 {
        let whose = if backend.works_runs() {
            "Without a server this command works it off"
        } else {
            "Ctrl-C stops watching only"
        };
        out.note(format!("run {id} started. {whose}; `windlass runs stop {id}` stops it"));
    }
    let watched = async {
        let mut pause = LOOK_FIRST;
        while !run.has_ended() {
            out.progress(progress(&run));
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LOOK_MAX);
            run = backend.run(id).await?;
        }
        out.end_progress();
        anyhow::Ok(run)
    };
    tokio::select! {
        ended = watched => ended,
        never = backend.work_runs() => match never {},
    }
}

/// Prints what a run has done.
///
/// # Errors
/// If it did not come to its end.
pub fn report(out: Output, run: &RunView) -> anyhow::Result<Exit> {
    if out.is_json() {
        out.json(run)?;
    } else {
        out.line(format!("{} {}", text::tasks(run.changed), done(run.action)))?;
        if run.refused > 0 {
            out.warn(format!("{} not changed", text::tasks(run.refused)));
        }
        refusals(out, run);
    }
    let about = format!("after {} of {}", text::count(run.changed), matched(run));
    match run.state {
        RunState::Running | RunState::Done => Ok(Exit::Done),
        RunState::Stopped => {
            let by = text::clean(run.stopped_by.as_deref().unwrap_or("another caller"));
            Err(Failure::new(Exit::Failed, format!("run {} was stopped by {by} {about}", run.id))
                .hint("the rest is as it was; the same command starts a new run for it")
                .into())
        }
        RunState::Failed => {
            let why = run.failure.as_ref().map_or("for an unknown reason", |failure| &failure.message);
            Err(Failure::new(Exit::Failed, format!("run {} failed {about}: {why}", run.id)).into())
        }
    }
}

fn refusals(out: Output, run: &RunView) {
    for refusal in &run.refusals {
        out.note(format!("  {}: {}", refusal.id, text::clean(&refusal.error.message)));
    }
}

/// What an action has done to tasks.
pub fn done(action: RunAction) -> &'static str {
    match action {
        RunAction::Cancel => "cancelled or asked to end",
        RunAction::Retry => "made ready again",
        RunAction::Remove => "removed",
    }
}

fn action(action: RunAction) -> &'static str {
    match action {
        RunAction::Cancel => "cancel",
        RunAction::Retry => "retry",
        RunAction::Remove => "remove",
    }
}

fn state(out: Output, state: RunState) -> String {
    let colour = match state {
        RunState::Running => Colour::Cyan,
        RunState::Done => Colour::Green,
        RunState::Stopped => Colour::Yellow,
        RunState::Failed => Colour::Red,
    };
    out.paint(colour, state.as_str())
}

fn over(run: &RunView) -> String {
    if run.over_ms == 0 { "at once".to_owned() } else { human(Duration::from_millis(run.over_ms)) }
}

fn matched(run: &RunView) -> String {
    format!("{}{}", text::count(run.matched), if run.more { " or more" } else { "" })
}

/// A bar with figures.
fn progress(run: &RunView) -> String {
    let handled = (run.changed + run.refused).min(run.matched);
    let full = (handled * BAR).checked_div(run.matched).unwrap_or(BAR) as usize;
    let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR as usize - full));
    format!("[{bar}] {} of {}", text::count(run.changed), matched(run))
}

/// The filter as the flags of a command.
fn chosen(filter: &TaskFilter) -> String {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(filter) else { return String::new() };
    let shown: Vec<_> = fields.iter().map(|(name, value)| format!("{name} {}", value_text(value))).collect();
    if shown.is_empty() { "all".to_owned() } else { text::cut(&shown.join(", "), 200) }
}

fn value_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(values) => format!("({})", values.len()),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::Timestamp;

    use super::*;

    fn run(changed: u64, matched: u64, more: bool) -> RunView {
        RunView {
            id: 7,
            action: RunAction::Retry,
            filter: TaskFilter::default(),
            over_ms: 600_000,
            reason: None,
            by: "anybody".into(),
            state: RunState::Running,
            stopped_by: None,
            failure: None,
            matched,
            more,
            changed,
            refused: 0,
            refusals: Vec::new(),
            started_at: Timestamp::from_ms(0),
            updated_at: Timestamp::from_ms(0),
        }
    }

    #[test]
    fn the_bar_is_never_longer_than_itself() {
        assert!(progress(&run(0, 10, false)).starts_with("[------------------------------] 0 of 10"));
        assert!(progress(&run(1_000, 2_000, true)).ends_with("---] 1,000 of 2,000 or more"));
        for (changed, matched) in [(10, 10), (30, 10), (0, 0)] {
            let bar = progress(&run(changed, matched, false));
            assert!(bar.starts_with("[##############################]"), "{bar}");
        }
    }
}
