//! `windlass schedules ls|set|show|pause|resume|run|rm`.

use std::time::Duration;

use clap::{Args, Subcommand};
use windlass::schedule::Missed;
use windlass_core::{Name, OnFailure, State, TaskId};
use windlass_server::api::{EncodingView, EnqueueRequest, ScheduleRequest, ScheduleView, ScheduledTask};

use super::enqueue::read_payload;
use crate::{
    duration,
    failure::{Exit, Failure},
    output::{Colour, Output, table::Table, text},
    session::Session,
};

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum SchedulesCommand {
    /// List schedules with their next and last ticks
    Ls,
    /// Make a schedule, or replace what it enqueues and when
    Set(Box<SetArgs>),
    /// Show everything about a schedule
    Show {
        /// The schedule
        name: String,
    },
    /// Skip ticks: they enqueue nothing until the schedule is resumed
    Pause {
        /// The schedule
        name: String,
    },
    /// Go on with the next tick
    Resume {
        /// The schedule
        name: String,
    },
    /// Enqueue its task now; its ticks do not change
    Run {
        /// The schedule
        name: String,
    },
    /// Remove a schedule; tasks that it enqueued stay
    Rm {
        /// The schedule
        name: String,
    },
}

/// Arguments of `schedules set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The schedule
    name: String,
    /// Which handler runs its tasks: http, sleep, echo, or a kind of your own
    kind: String,
    /// When, as minute hour day-of-month month day-of-week (with six fields, seconds first), or @hourly,
    /// @daily, …
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    cron: String,
    /// The time zone of the expression, such as Europe/Berlin; UTC if not given
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// After a time in which no worker could fire ticks: once makes up for all missed ticks with one
    /// task, skip leaves out those more than a minute late
    #[arg(long, value_name = "once|skip", value_parser = missed)]
    missed: Option<Missed>,
    /// The payload of each task: JSON, @FILE, or - for stdin
    #[arg(long, short, value_name = "JSON|@FILE|-")]
    payload: Option<String>,
    /// Which queue its tasks wait in
    #[arg(long)]
    queue: Option<String>,
    /// The job they belong to
    #[arg(long)]
    job: Option<String>,
    /// The workflow that they are appended to
    #[arg(long)]
    workflow: Option<String>,
    /// What a failure does to the rest of the workflow
    #[arg(long, value_name = "block|skip|cancel", value_parser = on_failure, requires = "workflow")]
    on_failure: Option<OnFailure>,
    /// Higher first; 0 is usual
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// How many attempts each task gets
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// How long one attempt may take, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

fn missed(text: &str) -> Result<Missed, String> {
    Missed::ALL
        .into_iter()
        .find(|policy| policy.as_str() == text)
        .ok_or_else(|| "write once or skip".to_owned())
}

fn on_failure(text: &str) -> Result<OnFailure, String> {
    let found = OnFailure::ALL.into_iter().find(|policy| policy.as_str() == text);
    found.ok_or_else(|| "write block, skip or cancel".to_owned())
}

/// Runs it.
pub async fn run(session: &Session, command: SchedulesCommand) -> anyhow::Result<Exit> {
    match command {
        SchedulesCommand::Ls => list(session).await,
        SchedulesCommand::Set(args) => set(session, *args).await,
        SchedulesCommand::Show { name } => show(session, &checked(&name)?).await,
        SchedulesCommand::Pause { name } => pause(session, &checked(&name)?).await,
        SchedulesCommand::Resume { name } => resume(session, &checked(&name)?).await,
        SchedulesCommand::Run { name } => enqueue(session, &checked(&name)?).await,
        SchedulesCommand::Rm { name } => remove(session, &checked(&name)?).await,
    }
}

fn checked(name: &str) -> Result<Name, Failure> {
    Name::new("schedule", name).map_err(|error| Failure::usage(error.to_string()))
}

async fn list(session: &Session) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let schedules = backend.schedules().await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&schedules)?;
        return Ok(Exit::Done);
    }
    if schedules.schedules.is_empty() {
        out.note("no schedules: make one with `windlass schedules set NAME --cron EXPR KIND`");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["NAME", "CRON", "TZ", "KIND", "STATE", "NEXT", "LAST"]);
    for schedule in &schedules.schedules {
        let known = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), text::clean);
        let time = |at: Option<&windlass_core::Timestamp>| {
            at.map_or_else(|| "-".to_owned(), |at| text::time(out, *at))
        };
        table.row(vec![
            text::clean(schedule.name.as_str()),
            known(schedule.cron.as_deref()),
            known(schedule.tz.as_deref()),
            known(schedule.task.as_ref().map(|task| task.kind.as_str())),
            state(out, schedule),
            time(schedule.next.first()),
            time(schedule.last_at.as_ref()),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    Ok(Exit::Done)
}

fn state(out: Output, schedule: &ScheduleView) -> String {
    match schedule {
        ScheduleView { error: Some(_), .. } => out.paint(Colour::Red, "unreadable"),
        ScheduleView { paused: true, .. } => out.paint(Colour::Yellow, "paused"),
        _ => "on".to_owned(),
    }
}

async fn set(session: &Session, args: SetArgs) -> anyhow::Result<Exit> {
    let name = checked(&args.name)?;
    let task = EnqueueRequest {
        kind: args.kind,
        payload: args.payload.as_deref().map(read_payload).transpose()?,
        queue: args.queue,
        job: args.job,
        workflow: args.workflow,
        on_failure: args.on_failure,
        priority: args.priority,
        max_attempts: args.max_attempts,
        timeout_ms: args.timeout.map(|timeout| timeout.as_millis() as u64),
        ..EnqueueRequest::default()
    };
    let request = ScheduleRequest { cron: args.cron, tz: args.tz, missed: args.missed, task };
    let backend = session.backend_to_change().await?;
    let schedule = backend.set_schedule(&name, request).await?;
    backend.close().await?;
    for warning in &schedule.warnings {
        session.out.warn(warning);
    }
    say_next(session.out, &schedule, "set")
}

async fn pause(session: &Session, name: &Name) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let schedule = backend.set_schedule_paused(name, true).await?;
    backend.close().await?;
    say_next(session.out, &schedule, "paused")
}

async fn resume(session: &Session, name: &Name) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let schedule = backend.set_schedule_paused(name, false).await?;
    backend.close().await?;
    say_next(session.out, &schedule, "resumed")
}

/// Prints what was done, and the next ticks.
fn say_next(out: Output, schedule: &ScheduleView, done: &str) -> anyhow::Result<Exit> {
    if out.is_json() {
        out.json(schedule)?;
        return Ok(Exit::Done);
    }
    let name = text::clean(schedule.name.as_str());
    match (schedule.paused, schedule.next.is_empty()) {
        (true, _) if done == "paused" => out.note(format!("schedule {name} paused")),
        (true, _) => {
            out.note(format!("schedule {name} {done}; it is paused: `windlass schedules resume {name}`"));
        }
        (false, true) => out.note(format!("schedule {name} {done}; it has no ticks any more")),
        (false, false) => out.note(format!("schedule {name} {done}; next:")),
    }
    for tick in &schedule.next {
        out.line(text::time(out, *tick))?;
    }
    Ok(Exit::Done)
}

async fn show(session: &Session, name: &Name) -> anyhow::Result<Exit> {
    let backend = session.backend().await?;
    let schedule = backend.schedule(name).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&schedule)?;
        return Ok(Exit::Done);
    }
    for (name, value) in facts(out, &schedule) {
        out.line(format!("{name:<12} {value}"))?;
    }
    Ok(Exit::Done)
}

fn facts(out: Output, schedule: &ScheduleView) -> Vec<(&'static str, String)> {
    let word = |text: Option<&str>| text.map(text::clean);
    let ticks: Vec<_> = schedule.next.iter().map(|tick| text::time(out, *tick)).collect();
    let mut facts = vec![
        ("name", Some(text::clean(schedule.name.as_str()))),
        ("state", Some(state(out, schedule))),
        ("error", word(schedule.error.as_deref())),
        ("cron", word(schedule.cron.as_deref())),
        ("in words", word(schedule.words.as_deref())),
        ("tz", word(schedule.tz.as_deref())),
        ("missed", schedule.missed.map(|missed| missed.as_str().to_owned())),
        ("next", (!ticks.is_empty()).then(|| ticks.join(", "))),
        ("last", schedule.last_at.map(|at| text::time(out, at))),
        ("last task", schedule.last_task.map(|id| last_task(out, id, schedule.last_task_state))),
        ("passed", schedule.passed.as_ref().map(|passed| text::clean(&passed.sentence))),
    ];
    facts.extend(schedule.task.iter().flat_map(task_facts));
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn last_task(out: Output, id: TaskId, state: Option<State>) -> String {
    match state {
        Some(state) => format!("{id}, {}", text::state(out, state)),
        None => id.to_string(),
    }
}

fn task_facts(task: &ScheduledTask) -> Vec<(&'static str, Option<String>)> {
    let name = |name: Option<&Name>| name.map(|name| text::clean(name.as_str()));
    let payload = match task.payload_encoding {
        EncodingView::Json => text::clean(task.payload.get()),
        EncodingView::Bytes => format!("bytes {}", text::clean(task.payload.get())),
    };
    vec![
        ("kind", name(Some(&task.kind))),
        ("queue", name(Some(&task.queue))),
        ("job", name(task.job.as_ref())),
        ("workflow", name(task.workflow.as_ref())),
        ("on failure", task.on_failure.map(|policy| policy.as_str().to_owned())),
        ("priority", (task.priority != 0).then(|| task.priority.to_string())),
        ("attempts", task.max_attempts.map(|attempts| attempts.to_string())),
        ("timeout", task.timeout_ms.map(|ms| format!("{ms} ms"))),
        ("payload", Some(payload)),
    ]
}

async fn enqueue(session: &Session, name: &Name) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let answer = backend.run_schedule(name).await?;
    backend.close().await?;
    let out = session.out;
    for warning in &answer.warnings {
        out.warn(warning);
    }
    if out.is_json() {
        out.json(&answer)?;
    } else {
        out.line(answer.id.to_string())?;
    }
    Ok(Exit::Done)
}

async fn remove(session: &Session, name: &Name) -> anyhow::Result<Exit> {
    let backend = session.backend_to_change().await?;
    let answer = backend.remove_schedule(name).await?;
    backend.close().await?;
    if session.out.is_json() {
        session.out.json(&answer)?;
    } else {
        session.out.note(format!("schedule {} removed", text::clean(answer.removed.as_str())));
    }
    Ok(Exit::Done)
}
