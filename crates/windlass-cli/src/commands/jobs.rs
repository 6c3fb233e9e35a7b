//! `windlass jobs ls|show|set|pause|resume|cancel|rm`.

use std::time::Duration;

use clap::{Args, Subcommand};
use windlass_core::{Count, JobState, Name, gate::COUNT_MAX, store::PAGE_MAX};
use windlass_server::api::{ErrorCode, JobRequest, JobView};

use crate::{
    backend::Backend,
    config::nearest,
    duration,
    failure::{Exit, Failure},
    output::{Colour, Output, table::Table, text},
    session::Session,
};

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List jobs with their limits, and how many of their tasks run and wait
    Ls(PageArgs),
    /// Show one job
    Show(NameArgs),
    /// Set a job's limit or delay; this works before its first task and while its tasks run
    Set(SetArgs),
    /// Start no more tasks of a job; running ones go on
    Pause(PauseArgs),
    /// Start tasks of a job again
    Resume(NameArgs),
    /// Cancel a job's waiting tasks, and every task that is added later
    Cancel(EndArgs),
    /// Cancel a job's waiting tasks, and remove the job when its last running task has ended
    Rm(EndArgs),
}

/// Which page of a list by name.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = PAGE_MAX, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_MAX)))]
    pub limit: u32,
    /// Only jobs after this name: the last one of the page before
    #[arg(long, value_name = "NAME")]
    pub after: Option<String>,
}

/// Which job.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The job
    name: String,
}

/// Arguments of `jobs pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// The job
    name: String,
    /// Also if the job does not exist yet: it is created paused, and its first tasks wait
    #[arg(long)]
    create: bool,
}

/// Arguments of `jobs set`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct SetArgs {
    /// The job
    name: String,
    /// How many of its tasks run at once at most, over all workers
    #[arg(long, value_name = "N|none", value_parser = limit, group = "change")]
    concurrency: Option<Change<u32>>,
    /// The least time between two starts, such as 200ms
    #[arg(long, value_name = "DURATION|none", value_parser = delay, group = "change")]
    delay: Option<Change<Duration>>,
}

/// Arguments of `jobs cancel` and `jobs rm`.
#[derive(Debug, Args)]
pub struct EndArgs {
    /// The job
    name: String,
    /// Also ask the running tasks to end
    #[arg(long)]
    now: bool,
}

/// A value, or `none` to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change<T> {
    To(T),
    Away,
}

impl<T> Change<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::To(value) => Some(value),
            Self::Away => None,
        }
    }
}

fn limit(text: &str) -> Result<Change<u32>, String> {
    match text {
        "none" => Ok(Change::Away),
        text => text.parse().map(Change::To).map_err(|_| "write a number such as 3, or none".to_owned()),
    }
}

fn delay(text: &str) -> Result<Change<Duration>, String> {
    match text {
        "none" => Ok(Change::Away),
        text => duration::parse(text).map(Change::To),
    }
}

/// Runs it.
pub async fn run(session: &Session, command: JobsCommand) -> anyhow::Result<Exit> {
    match command {
        JobsCommand::Ls(args) => list(session, &args).await,
        JobsCommand::Show(args) => show(session, &args.name).await,
        JobsCommand::Set(args) => set(session, &args).await,
        JobsCommand::Pause(args) => pause(session, &args).await,
        JobsCommand::Resume(args) => set_state(session, &args.name, JobState::Active, false).await,
        JobsCommand::Cancel(args) => set_state(session, &args.name, JobState::Cancelled, args.now).await,
        JobsCommand::Rm(args) => remove(session, &args).await,
    }
}

fn job_name(text: &str) -> Result<Name, Failure> {
    Name::new("job", text).map_err(|error| Failure::usage(error.to_string()))
}

async fn list(session: &Session, args: &PageArgs) -> anyhow::Result<Exit> {
    let after = args.after.as_deref().map(job_name).transpose()?;
    let backend = session.backend().await?;
    let page = backend.jobs(after.as_ref(), args.limit).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&page)?;
        return Ok(Exit::Done);
    }
    if page.jobs.is_empty() {
        out.note("no jobs: the first task with --job makes one, or `windlass jobs set NAME --concurrency 3`");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["JOB", "STATE", "CONCURRENCY", "DELAY", "RUNNING", "READY", "HELD"]);
    for job in &page.jobs {
        table.row(vec![
            text::clean(job.job.as_str()),
            state(out, job.state),
            concurrency(job),
            delay_of(job),
            text::count(job.running),
            text::count(job.ready),
            counted(job.held),
        ]);
    }
    for line in table.lines() {
        out.line(line)?;
    }
    if let Some(next) = page.next {
        out.note(format!("there may be more: --after {}", text::clean(&windlass_core::why::word(&next))));
    }
    Ok(Exit::Done)
}

/// A state in its colour.
fn state(out: Output, state: JobState) -> String {
    let colour = match state {
        JobState::Active => Colour::Green,
        JobState::Paused => Colour::Yellow,
        JobState::Cancelled | JobState::Removing => Colour::Red,
    };
    out.paint(colour, state.as_str())
}

fn concurrency(job: &JobView) -> String {
    job.concurrency.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

fn delay_of(job: &JobView) -> String {
    job.delay_ms.map_or_else(|| "none".to_owned(), |ms| duration::exact(Duration::from_millis(ms)))
}

/// A number that is counted only up to a bound.
pub fn counted(number: u64) -> String {
    Count::up_to(number, COUNT_MAX).to_string()
}

async fn show(session: &Session, name: &str) -> anyhow::Result<Exit> {
    let name = job_name(name)?;
    let backend = session.backend().await?;
    let job = backend.job(&name).await?;
    backend.close().await?;
    told(session, &job)
}

fn told(session: &Session, job: &JobView) -> anyhow::Result<Exit> {
    let out = session.out;
    if out.is_json() {
        out.json(job)?;
        return Ok(Exit::Done);
    }
    let facts = [
        ("job", Some(text::clean(job.job.as_str()))),
        ("state", Some(state(out, job.state))),
        ("concurrency", Some(concurrency(job))),
        ("delay", Some(delay_of(job))),
        ("running", Some(text::count(job.running))),
        ("ready", Some(text::count(job.ready))),
        ("held", Some(counted(job.held))),
        ("created", Some(text::time(out, job.created_at))),
        ("last start", job.last_start_at.map(|at| text::time(out, at))),
    ];
    for (fact, value) in facts.into_iter().filter_map(|(fact, value)| Some((fact, value?))) {
        out.line(format!("{fact:<12} {value}"))?;
    }
    let typed = text::clean(&windlass_core::why::word(&job.job));
    out.tip(format!("its tasks: `windlass tasks ls --job {typed}`"));
    Ok(Exit::Done)
}

async fn set(session: &Session, args: &SetArgs) -> anyhow::Result<Exit> {
    let name = job_name(&args.name)?;
    let request = JobRequest {
        concurrency: args.concurrency.map(Change::value),
        delay_ms: args.delay.map(|delay| delay.value().map(|delay| delay.as_millis() as u64)),
        ..JobRequest::default()
    };
    let backend = session.backend_to_change().await?;
    let is_new = backend.job(&name).await.is_err_and(|error| error.code == ErrorCode::NotFound);
    let job = backend.set_job(&name, request).await?;
    backend.close().await?;
    if is_new {
        session.out.note(format!("job {} made", text::clean(name.as_str())));
    }
    told(session, &job)
}

/// Pauses a job. A name without a job is taken for a typing mistake, unless the caller adds `--create`.
async fn pause(session: &Session, args: &PauseArgs) -> anyhow::Result<Exit> {
    if args.create {
        let name = job_name(&args.name)?;
        let backend = session.backend_to_change().await?;
        let request = JobRequest { state: Some(JobState::Paused), ..JobRequest::default() };
        let is_new = backend.job(&name).await.is_err_and(|error| error.code == ErrorCode::NotFound);
        if is_new {
            backend.set_job(&name, request).await?;
            backend.close().await?;
            session.out.note(format!("job {} made, paused", text::clean(name.as_str())));
            return Ok(Exit::Done);
        }
        backend.close().await?;
    }
    set_state(session, &args.name, JobState::Paused, false).await
}

/// A job, or the name that was probably meant.
async fn find(backend: &dyn Backend, name: &Name, state: JobState) -> anyhow::Result<JobView> {
    let error = match backend.job(name).await {
        Ok(job) => return Ok(job),
        Err(error) if error.code == ErrorCode::NotFound => error,
        Err(error) => return Err(error.into()),
    };
    let known = backend.jobs(None, PAGE_MAX).await?.jobs;
    let failure = Failure::from(error);
    Err(match nearest(name.as_str(), known.iter().map(|job| job.job.as_str())) {
        Some(near) => failure.hint(format!("did you mean {near:?}?")),
        None if state == JobState::Paused => failure.hint(format!(
            "to pause it before its first task: `windlass jobs pause {} --create`",
            windlass_core::why::word(name)
        )),
        None => failure,
    }
    .into())
}

/// Sets the state of an existing job.
async fn set_state(session: &Session, name: &str, state: JobState, now: bool) -> anyhow::Result<Exit> {
    let name = job_name(name)?;
    let backend = session.backend_to_change().await?;
    let before = find(&*backend, &name, state).await?;
    let request = JobRequest { state: Some(state), now, ..JobRequest::default() };
    let job = backend.set_job(&name, request).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&job)?;
        return Ok(Exit::Done);
    }
    let verb = if state == JobState::Active { "resumed" } else { state.as_str() };
    let again = if before.state == state { " already" } else { "" };
    let running = match (state, job.running) {
        (JobState::Active, _) | (_, 0) => String::new(),
        (_, running) if now => format!("; {} asked to end", text::tasks(running)),
        (_, running) => format!("; {} still running", text::tasks(running)),
    };
    out.note(format!("job {}{again} {verb}{running}", text::clean(name.as_str())));
    Ok(Exit::Done)
}

async fn remove(session: &Session, args: &EndArgs) -> anyhow::Result<Exit> {
    let name = job_name(&args.name)?;
    let backend: Box<dyn Backend> = session.backend_to_change().await?;
    let removal = backend.remove_job(&name, args.now).await?;
    backend.close().await?;
    let out = session.out;
    if out.is_json() {
        out.json(&removal)?;
        return Ok(Exit::Done);
    }
    let shown = text::clean(name.as_str());
    let cancelled = format!("{} cancelled", text::tasks(removal.cancelled));
    match (removal.running, args.now) {
        (0, _) => out.note(format!("job {shown} removed; {cancelled}")),
        (running, true) => out.note(format!(
            "job {shown} is being removed; {cancelled}, {} asked to end",
            text::tasks(running)
        )),
        (running, false) => out.note(format!(
            "job {shown} is being removed; {cancelled}, {} still running (--now asks them to end)",
            text::tasks(running)
        )),
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_none() {
        assert_eq!(limit("3"), Ok(Change::To(3)));
        assert_eq!(limit("0"), Ok(Change::To(0)));
        assert_eq!(limit("none"), Ok(Change::Away));
        for text in ["", "-1", "three", "1.5", "99999999999"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_delay_has_its_unit_or_is_none() {
        assert_eq!(delay("200ms"), Ok(Change::To(Duration::from_millis(200))));
        assert_eq!(delay("none"), Ok(Change::Away));
        assert!(delay("200").is_err());
    }
}
