//! `windlass workflows ls|show|retry|skip|cancel`.

use clap::{Args, Subcommand};
use windlass_core::{Name, WorkflowAction, why::word};
use windlass_server::api::{EndedSteps, WorkflowView};

use super::jobs::{PageArgs, counted};
use crate::{
    failure::{Exit, Failure},
    output::{Colour, Output, table::Table, text},
    session::Session,
};

/// What to do with workflows.
#[derive(Debug, Subcommand)]
pub enum WorkflowsCommand {
    /// List workflows that have unfinished steps or are blocked
    Ls(LsArgs),
    /// Show one workflow; also an ended one, while its steps are still kept
    Show(NameArgs),
    /// Give the step that blocks a workflow new attempts
    Retry(NameArgs),
    /// Skip the step that blocks a workflow, and go on with the next
    Skip(NameArgs),
    /// Cancel every step that has not ended; a running one is asked to end
    Cancel(NameArgs),
}

/// Arguments of `workflows ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Only blocked workflows: they wait for a retry, skip or cancel
    #[arg(long)]
    blocked: bool,
    #[command(flatten)]
    page: PageArgs,
}

/// Which workflow.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The workflow
    name: String,
}

/// Runs it.
pub async fn run(session: &Session, command: WorkflowsCommand) -> anyhow::Result<Exit> {
    match command {
        WorkflowsCommand::Ls(args) => list(session, &args).await,
        WorkflowsCommand::Show(args) => show(session, &args.name).await,
        WorkflowsCommand::Retry(args) => change(session, &args.name, WorkflowAction::Retry).await,
        WorkflowsCommand::Skip(args) => change(session, &args.name, WorkflowAction::Skip).await,
        WorkflowsCommand::Cancel(args) => change(session, &args.name, WorkflowAction::Cancel).await,
    }
}

fn workflow_name(text: &str) -> Result<Name, Failure> {
    Name::new("workflow", text).map_err(|error| Failure::usage(error.to_string()))
}

async fn list(session: &Session, args: &LsArgs) -> anyhow::Result<Exit> {
    let after = args.page.after.as_deref().map(workflow_name).transpose()?;
    let backend = session.backend().await?;
    let page = backend.workflows(args.blocked, after.as_ref(), args.page.limit).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&page)?;
        return Ok(Exit::Done);
    }
    if page.workflows.is_empty() {
        let which = if args.blocked { "blocked workflows" } else { "workflows with unfinished steps" };
        out.note(format!("no {which}"));
        return Ok(Exit::Done);
    }
    let mut table =
        Table::new(&["WORKFLOW", "STATE", "STEPS", "HEAD", "HEAD STATE", "ON FAILURE", "BLOCKED BY"]);
    for workflow in &page.workflows {
        let id = |id: Option<windlass_core::TaskId>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        table.row(vec![
            text::clean(workflow.workflow.as_str()),
            state(out, workflow),
            counted(workflow.steps),
            id(workflow.head),
            workflow.head_state.map_or_else(|| "-".to_owned(), |state| text::state(out, state)),
            workflow.on_failure.map_or_else(|| "-".to_owned(), |policy| policy.to_string()),
            id(workflow.blocked_by),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    if let Some(next) = page.next {
        out.note(format!("there may be more: --after {}", text::clean(&word(&next))));
    }
    Ok(Exit::Done)
}

fn state(out: Output, workflow: &WorkflowView) -> String {
    match (&workflow.ended, workflow.blocked_by) {
        (Some(_), _) => "ended".to_owned(),
        (None, Some(_)) => out.paint(Colour::Red, "blocked"),
        (None, None) => out.paint(Colour::Green, "active"),
    }
}

async fn show(session: &Session, name: &str) -> anyhow::Result<Exit> {
    let name = workflow_name(name)?;
    let backend = session.backend().await?;
    let workflow = backend.workflow(&name).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&workflow)?;
        return Ok(Exit::Done);
    }
    let facts = [
        ("workflow", Some(text::clean(workflow.workflow.as_str()))),
        ("state", Some(state(out, &workflow))),
        ("on failure", workflow.on_failure.map(|policy| policy.to_string())),
        ("steps", Some(workflow.ended.as_ref().map_or_else(|| counted(workflow.steps), ends))),
        ("head", workflow.head.map(|head| head.to_string())),
        ("head state", workflow.head_state.map(|state| text::state(out, state))),
        ("blocked by", workflow.blocked_by.map(|culprit| culprit.to_string())),
        ("created", Some(text::time(out, workflow.created_at))),
        (
            "ended",
            workflow.ended.as_ref().and_then(|ended| ended.last_ended_at).map(|at| text::time(out, at)),
        ),
    ];
    for (fact, value) in facts.into_iter().filter_map(|(fact, value)| Some((fact, value?))) {
        out.line(format!("{fact:<11} {value}"))?;
    }
    let typed = text::clean(&word(&name));
    if workflow.blocked_by.is_some() {
        out.note(format!("hint: `windlass workflows retry {typed}`, or `windlass workflows skip {typed}`"));
    }
    out.tip(format!("its steps: `windlass tasks ls --workflow {typed}`"));
    Ok(Exit::Done)
}

/// How many steps of a workflow ended in each state.
fn ends(ended: &EndedSteps) -> String {
    let EndedSteps { done, dead, cancelled, more, .. } = ended;
    let more = if *more { " (of the newest tasks; there may be more)" } else { "" };
    format!("{done} done, {dead} dead, {cancelled} cancelled{more}")
}

async fn change(session: &Session, name: &str, action: WorkflowAction) -> anyhow::Result<Exit> {
    let name = workflow_name(name)?;
    let backend = session.backend_to_change().await?;
    let change = backend.change_workflow(&name, action).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&change)?;
        return Ok(Exit::Done);
    }
    let shown = text::clean(name.as_str());
    match action {
        WorkflowAction::Retry => out.note(format!("workflow {shown}: the step that failed is tried again")),
        WorkflowAction::Skip => out.note(format!("workflow {shown} goes on with the next step")),
        WorkflowAction::Cancel => {
            let steps = text::tasks(change.changed);
            out.note(format!("workflow {shown} cancelled: {steps} cancelled or asked to end"));
        }
    }
    Ok(Exit::Done)
}
