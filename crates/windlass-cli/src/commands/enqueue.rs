//! `windlass enqueue`.

mod import;

use std::{
    io::Read as _,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{json, value::RawValue};
use windlass_core::{JobState, Name, OnFailure, Payload, State, TaskId, Timestamp, why::word};
use windlass_server::api::{BatchRequest, EnqueueRequest, JobView, TaskView};

use self::import::Bad;
use super::tasks::wait;
use crate::{
    backend::Backend,
    duration,
    failure::{Exit, Failure},
    output::text,
    session::Session,
};

/// Most tasks in one call.
pub const BATCH_TASKS: usize = 1_000;
/// Most bytes of payload in one call; a batch ends with the task that passes this.
pub const BATCH_BYTES: usize = 1 << 20;
/// Largest payload that is read at all. It is far above every limit, so that the user sees the message of
/// the limit itself.
const PAYLOAD_READ_MAX_BYTES: u64 = 256 << 20;

/// Arguments of `enqueue`.
#[derive(Debug, Args)]
pub struct EnqueueArgs {
    /// Which handler runs it: http, sleep, echo, or a kind of your own
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    kind: Option<String>,
    /// Its payload: JSON, @FILE, or - for stdin
    #[arg(long, short, value_name = "JSON|@FILE|-", conflicts_with = "from")]
    payload: Option<String>,
    /// Which queue it waits in
    #[arg(long, conflicts_with = "from")]
    queue: Option<String>,
    /// The job it belongs to
    #[arg(long, conflicts_with = "from")]
    job: Option<String>,
    /// How many tasks of the job may run at once, if this call creates the job; an existing job keeps its
    /// limit
    #[arg(long, value_name = "N", requires = "job", value_parser = clap::value_parser!(u32).range(1..))]
    job_concurrency: Option<u32>,
    /// The workflow it belongs to
    #[arg(long, conflicts_with = "from")]
    workflow: Option<String>,
    /// What a failure does to the rest of the workflow; only the workflow's first task decides
    #[arg(long, value_name = "block|skip|cancel", requires = "workflow")]
    on_failure: Option<OnFailure>,
    /// Higher first; 0 is usual
    #[arg(long, allow_negative_numbers = true, conflicts_with = "from")]
    priority: Option<i32>,
    /// Start no sooner than this long from now, such as 5m
    #[arg(long = "in", value_name = "DURATION", value_parser = duration::parse, conflicts_with_all = ["at", "from"])]
    delay: Option<Duration>,
    /// Start no sooner than this time, such as 2027-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = duration::parse_time, conflicts_with = "from")]
    at: Option<Timestamp>,
    /// Idempotency key: the same queue and key give one task
    #[arg(long, conflicts_with_all = ["count", "from"])]
    key: Option<String>,
    /// If the key belongs to a task of another kind or payload, print that task instead of refusing
    #[arg(long, requires = "key")]
    ignore_key_conflict: bool,
    /// How many attempts it gets
    #[arg(long, value_name = "N", conflicts_with = "from")]
    max_attempts: Option<u32>,
    /// How long one attempt may take, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "from")]
    timeout: Option<Duration>,
    /// Enqueue it this many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: Option<u64>,
    /// Wait until it has ended and print its output; its id goes to stderr at once
    #[arg(long, conflicts_with = "from")]
    wait: bool,
    /// Wait at most this long, such as 30s; then the exit code is 1 and the task goes on
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "from")]
    wait_timeout: Option<Duration>,
    /// Read tasks from a file (or - for stdin), one JSON object a line; all are checked before any is
    /// added
    #[arg(long, value_name = "FILE|-", conflicts_with = "count")]
    from: Option<String>,
    /// Skip lines that are not valid tasks, and add the others
    #[arg(long, requires = "from")]
    skip_bad: bool,
    /// A name for this run: a second run with the same name adds only what the first did not add
    #[arg(long, value_name = "NAME", requires = "from")]
    run: Option<String>,
}

impl EnqueueArgs {
    /// Whether to wait, and for how long.
    fn waits(&self) -> Option<Waits> {
        (self.wait || self.wait_timeout.is_some()).then_some(Waits { limit: self.wait_timeout })
    }
}

/// How to wait for the end of the tasks.
#[derive(Debug, Clone, Copy)]
struct Waits {
    limit: Option<Duration>,
}

/// Runs it.
pub async fn run(session: &Session, args: EnqueueArgs) -> anyhow::Result<Exit> {
    if let Some(file) = &args.from {
        let backend = session.backend_to_change().await?;
        let bad = if args.skip_bad { Bad::LeftOut } else { Bad::Refused };
        let exit = import::run(session, &*backend, file, bad, args.run.as_deref()).await?;
        backend.close().await?;
        return Ok(exit);
    }
    let request = request(&args)?;
    let backend = session.backend_to_change().await?;
    let waits = args.waits();
    if waits.is_some() && !backend.has_worker() {
        return Err(wait::no_worker_runs(&*backend).into());
    }
    let exit = match args.count {
        None => one(session, &*backend, request, waits).await?,
        Some(count) => many(session, &*backend, &request, count, waits).await?,
    };
    backend.close().await?;
    Ok(exit)
}

/// The task that the flags describe.
fn request(args: &EnqueueArgs) -> anyhow::Result<EnqueueRequest> {
    Ok(EnqueueRequest {
        kind: args.kind.clone().unwrap_or_default(),
        payload: args.payload.as_deref().map(read_payload).transpose()?,
        queue: args.queue.clone(),
        job: args.job.clone(),
        job_concurrency: args.job_concurrency,
        workflow: args.workflow.clone(),
        on_failure: args.on_failure,
        priority: args.priority,
        run_at: args.at,
        delay_ms: args.delay.map(|delay| delay.as_millis() as u64),
        key: args.key.clone(),
        ignore_key_conflict: args.ignore_key_conflict.then_some(true),
        max_attempts: args.max_attempts,
        timeout_ms: args.timeout.map(|timeout| timeout.as_millis() as u64),
        ..EnqueueRequest::default()
    })
}

/// A payload from the command line, a file or stdin. It is checked before it is sent.
pub(super) fn read_payload(source: &str) -> anyhow::Result<Box<RawValue>> {
    let mut bytes = Vec::new();
    match source.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::usage(format!("cannot read payload file {path}: {error}")))?;
            file.take(PAYLOAD_READ_MAX_BYTES).read_to_end(&mut bytes)?;
        }
        None if source == "-" => {
            std::io::stdin().lock().take(PAYLOAD_READ_MAX_BYTES).read_to_end(&mut bytes)?;
        }
        None => bytes.extend_from_slice(source.as_bytes()),
    }
    let payload = Payload::json_text(bytes).map_err(|error| {
        Failure::usage(error.to_string())
            .hint("quote it for the shell, like --payload '{\"hello\":\"world\"}', or give a file with @FILE")
    })?;
    let text = String::from_utf8_lossy(payload.as_bytes()).into_owned();
    Ok(RawValue::from_string(text)?)
}

async fn one(
    session: &Session,
    backend: &dyn Backend,
    request: EnqueueRequest,
    waits: Option<Waits>,
) -> anyhow::Result<Exit> {
    let out = session.out;
    let start = Instant::now();
    let job = request.job.clone();
    let answer = backend.enqueue(request).await?;
    for warning in &answer.warnings {
        out.warn(warning);
    }
    if answer.existing {
        out.note("a task with this key was already there");
    }
    let Some(waits) = waits else {
        return if out.is_json() {
            out.json(&answer).map(|()| Exit::Done)
        } else {
            out.line(answer.id.to_string())?;
            if out.is_terminal()
                && let Some(told) = told(backend, job.as_deref()).await
            {
                out.tip(told);
            }
            Ok(Exit::Done)
        };
    };
    // Print the id before the wait: a user who stops waiting needs it. It goes to stderr, because stdout
    // is for the result.
    out.note(format!("{} enqueued; waiting for its end", answer.id));
    wait::each_ended(backend, vec![answer.id], waits.limit, |task| {
        if out.is_json() {
            return out.json(task);
        }
        Ok(out.line(wait::line(out, task, &format!(" in {}", text::elapsed(start.elapsed()))))?)
    })
    .await
}

async fn many(
    session: &Session,
    backend: &dyn Backend,
    request: &EnqueueRequest,
    count: u64,
    waits: Option<Waits>,
) -> anyhow::Result<Exit> {
    let out = session.out;
    let start = Instant::now();
    let size = request.payload.as_ref().map_or(2, |payload| payload.get().len()).max(1);
    let per_call = (BATCH_BYTES / size).clamp(1, BATCH_TASKS) as u64;
    let mut ids: Vec<TaskId> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    while (ids.len() as u64) < count {
        let n = per_call.min(count - ids.len() as u64);
        let tasks = std::iter::repeat_n(request, n as usize).cloned().collect();
        let answer =
            backend.enqueue_batch(BatchRequest { tasks, dry_run: false }).await.map_err(|error| {
                let mut failure = Failure::from(error);
                if !ids.is_empty() {
                    failure.message =
                        format!("{} (after {})", failure.message, text::tasks(ids.len() as u64));
                }
                failure
            })?;
        ids.extend(answer.tasks.iter().map(|task| task.id));
        for warning in answer.warnings {
            if !warnings.contains(&warning) {
                out.warn(&warning);
                warnings.push(warning);
            }
        }
        out.progress(format!("{} of {} enqueued", text::count(ids.len() as u64), text::tasks(count)));
    }
    out.end_progress();
    let Some(waits) = waits else {
        if out.is_json() {
            out.json(&json!({"enqueued": ids.len(), "ids": ids, "warnings": warnings}))?;
        } else {
            let job = told(backend, request.job.as_deref()).await;
            let job = job.map_or_else(String::new, |job| format!(" ({job})"));
            out.line(format!("{} enqueued{job}", text::tasks(count)))?;
        }
        return Ok(Exit::Done);
    };
    if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
        out.note(format!("{} enqueued, from {first} to {last}; waiting for their ends", text::tasks(count)));
    }
    let mut tally = Tally::default();
    let exit = wait::each_ended(backend, ids, waits.limit, |task| {
        tally.add(task);
        out.progress(format!("{} of {} ended", text::count(tally.total()), text::tasks(count)));
        Ok(())
    })
    .await?;
    out.end_progress();
    let took = start.elapsed();
    if out.is_json() {
        out.json(&json!({"done": tally.done, "dead": tally.dead, "cancelled": tally.cancelled,
            "seconds": took.as_secs_f64()}))?;
    } else {
        let Tally { done, dead, cancelled } = tally;
        let took = text::elapsed(took);
        out.line(format!(
            "{}: {done} done, {dead} dead, {cancelled} cancelled in {took}",
            text::tasks(count)
        ))?;
    }
    Ok(exit)
}

/// A note about the job that the tasks were added to. The tasks are already in the store, so if this
/// question fails only the note is missing.
async fn told(backend: &dyn Backend, job: Option<&str>) -> Option<String> {
    let name = Name::new("job", job?).ok()?;
    match backend.job(&name).await {
        Ok(job) => Some(about(&job)),
        Err(_) => Some(format!("job {}", text::clean(name.as_str()))),
    }
}

fn about(job: &JobView) -> String {
    let (name, typed) = (text::clean(job.job.as_str()), text::clean(&word(&job.job)));
    match (job.state, job.concurrency) {
        (JobState::Active, None) => {
            format!("job {name}: no limit; `windlass jobs set {typed} --concurrency 3` to set one")
        }
        (JobState::Active, Some(limit)) => format!("job {name}: at most {limit} at once"),
        (JobState::Removing, _) => format!("job {name}: being removed; they start when that is done"),
        (state, _) => format!("job {name}: {state}; `windlass jobs resume {typed}` to go on"),
    }
}

/// How many tasks ended in each state.
#[derive(Debug, Default)]
struct Tally {
    done: u64,
    dead: u64,
    cancelled: u64,
}

impl Tally {
    fn add(&mut self, task: &TaskView) {
        match task.state {
            State::Done => self.done += 1,
            State::Dead => self.dead += 1,
            _ => self.cancelled += 1,
        }
    }

    fn total(&self) -> u64 {
        self.done + self.dead + self.cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_not_json_is_refused_without_repeating_it() {
        let error = read_payload("{secret").unwrap_err();
        let failure = Failure::of(&error);
        assert_eq!(failure.exit, Exit::Usage);
        assert!(!failure.message.contains("secret"), "{}", failure.message);
        assert!(failure.hint.is_some());
    }

    #[test]
    fn enqueueing_into_a_job_shows_its_limit() {
        let job = |text: &str| -> JobView { serde_json::from_str(text).unwrap() };
        let rest = r#""running":0,"ready":0,"held":0,"created_at":"2027-01-01T00:00:00Z"}"#;
        for (text, told) in [
            (
                r#"{"job":"example.com","state":"active","#,
                "job example.com: no limit; `windlass jobs set example.com --concurrency 3` to set one",
            ),
            (r#"{"job":"j","state":"active","concurrency":3,"#, "job j: at most 3 at once"),
            (r#"{"job":"a b","state":"paused","#, "job a b: paused; `windlass jobs resume 'a b'` to go on"),
            (r#"{"job":"j","state":"removing","#, "job j: being removed; they start when that is done"),
        ] {
            assert_eq!(about(&job(&format!("{text}{rest}"))), told);
        }
    }

    #[test]
    fn a_payload_keeps_every_digit() {
        assert_eq!(
            read_payload("[1.10, 123456789012345678901]").unwrap().get(),
            "[1.10, 123456789012345678901]"
        );
    }
}
