//! A worker with tasks that end the whole process, to show that they are found and cost their
//! neighbours nothing.
//!
//! `aborter STORE enqueue N [OPTION…]` puts N tasks into a store, one of which calls `abort()`.
//! `aborter STORE run SLOTS [OPTION…]` works until every task has ended, if it lives so long, and prints them.
//! `aborter STORE first SLOTS [OPTION…]` does the same, but no task ends before `abort()` was called
//! with every slot taken.
//!
//! STORE is the address of a store or of a server. Options of every command: `schema=NAME`,
//! `lease-ms=N`. Options of `enqueue`:
//! `ends=abort` or `ends=overflow` (the stack), `culprits=N`, `ms=N` (how long the others take),
//! `jobs=N` and `limit=N` (their
//! limit).
//!
//! A task that ends nothing takes a while, so that most of what was claimed with the culprit is still
//! there when it strikes.

use std::{
    collections::HashMap,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::sync::Notify;
use windlass::{
    Client, Context, NewTask, OpenOptions, State, Task, TaskRecord, Worker, WorkerConfig,
    store::{Filter, SharedStore},
};
use windlass_remote::RemoteStore;

/// How long a culprit waits for its jobs to reach their limits: towards the end there are too few tasks
/// for that.
const JOBS_FULL_WAIT: Duration = Duration::from_secs(2);
/// Tasks of one enqueue.
const BATCH: usize = 500;
/// The exit code of a process that saw more tasks of a job run than its limit allows.
const OVER_LIMIT: i32 = 3;

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Work {
    ends_process: Option<Way>,
    ms: u64,
    job: Option<Job>,
}

/// The job of a task, with its limit and the number of jobs.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Job {
    number: u32,
    limit: u32,
    jobs: u32,
}

/// How a task ends the process that runs it.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
enum Way {
    Abort,
    Overflow,
}

impl Way {
    fn go(self) {
        match self {
            Self::Abort => std::process::abort(),
            Self::Overflow => {
                std::hint::black_box(deeper(0));
            }
        }
    }
}

/// Calls itself until the stack is used up.
fn deeper(depth: u64) -> u64 {
    let place = std::hint::black_box([depth; 1024]);
    if place.len() == 1024 { deeper(depth + 1) + place.iter().sum::<u64>() } else { 0 }
}

/// What runs in this process.
#[derive(Clone, Default)]
struct Crowd {
    is_first: bool,
    slots: u32,
    running: Arc<AtomicU32>,
    /// Every slot is taken, or every job is at its limit.
    full: Arc<Notify>,
    jobs: Jobs,
}

/// How many tasks of each job run.
#[derive(Clone, Default)]
struct Jobs {
    running: Arc<Mutex<HashMap<u32, u32>>>,
    were_full: Arc<AtomicBool>,
}

impl Jobs {
    /// Counts a task that starts; answers whether every job is at its limit now.
    fn start(&self, job: Job) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(job.number).or_default();
        *count += 1;
        if *count > job.limit {
            eprintln!("job {} runs {count} tasks, and its limit is {}", job.number, job.limit);
            std::process::exit(OVER_LIMIT);
        }
        running.len() == job.jobs as usize && running.values().all(|count| *count == job.limit)
    }

    fn end(&self, job: Job) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.entry(job.number).and_modify(|count| *count -= 1);
    }
}

impl Crowd {
    fn start(&self, work: &Work) {
        if let Some(job) = work.job
            && self.jobs.start(job)
            && !self.jobs.were_full.swap(true, Ordering::SeqCst)
        {
            println!("every job is at its limit");
            self.full.notify_one();
        }
        if self.running.fetch_add(1, Ordering::SeqCst) + 1 == self.slots {
            println!("every slot is taken");
            self.full.notify_one();
        }
    }
}

async fn work(work: Work, _context: Context, State(crowd): State<Crowd>) -> Result<(), String> {
    crowd.start(&work);
    if let Some(way) = work.ends_process {
        if crowd.is_first {
            crowd.full.notified().await;
        } else if work.job.is_some() {
            let _ = tokio::time::timeout(JOBS_FULL_WAIT, crowd.full.notified()).await;
        }
        way.go();
    }
    if crowd.is_first {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_millis(work.ms)).await;
    if let Some(job) = work.job {
        crowd.jobs.end(job);
    }
    Ok(())
}

/// What follows the number on the command line.
struct Settings(HashMap<String, String>);

impl Settings {
    fn read(arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let pair = |text: String| {
            let (name, value) = text.split_once('=').with_context(|| format!("not name=value: {text}"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        Ok(Self(arguments.map(pair).collect::<anyhow::Result<_>>()?))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<T: FromStr>(&self, name: &str, usual: T) -> anyhow::Result<T>
    where
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.get(name).map_or(Ok(usual), |text| text.parse().with_context(|| format!("{name}={text}")))
    }
}

async fn open(url: &str, settings: &Settings, works: bool) -> anyhow::Result<SharedStore> {
    if url.starts_with("http") {
        let (servers, options) = (url.parse()?, windlass_remote::Options::default());
        return Ok(if works {
            RemoteStore::for_worker(&servers, options).await?
        } else {
            RemoteStore::connect(&servers, options).await?
        });
    }
    let options = OpenOptions::new();
    let options = match settings.get("schema") {
        Some(schema) => options.schema(schema),
        None => options,
    };
    Ok(windlass::open_with(url, options).await?)
}

fn tasks(number: u32, settings: &Settings) -> anyhow::Result<Vec<NewTask>> {
    let way = if settings.get("ends") == Some("overflow") { Way::Overflow } else { Way::Abort };
    let (culprits, ms) = (settings.number("culprits", 1_u32)?, settings.number("ms", 300_u64)?);
    let (jobs, limit) = (settings.number("jobs", 0_u32)?, settings.number("limit", 1_u32)?);
    // Among the first that are claimed, so that the first crash has a full house.
    let places = [number / 4, number / 3];
    let ends = |n| places.iter().take(culprits as usize).any(|place| *place == n).then_some(way);
    let job = |n| (jobs > 0).then(|| Job { number: n % jobs, limit, jobs });
    let task = |n| {
        let mut task = Work { ends_process: ends(n), ms, job: job(n) }.new_task()?;
        if let Some(job) = job(n) {
            task.job = Some(windlass::Name::new("job", format!("j{}", job.number))?);
            task.job_concurrency = Some(job.limit);
        }
        Ok(task)
    };
    (0..number).map(task).collect()
}

async fn all(store: &SharedStore) -> anyhow::Result<Vec<TaskRecord>> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = store.tasks(&Filter::default(), after, 1_000).await?;
        tasks.extend(page.tasks);
        after = page.next;
        if after.is_none() {
            return Ok(tasks);
        }
    }
}

async fn run(store: &SharedStore, crowd: Crowd, settings: &Settings) -> anyhow::Result<()> {
    let lease_ttl = Duration::from_millis(settings.number("lease-ms", 10_000)?);
    let slots = crowd.slots;
    let config = WorkerConfig {
        slots,
        lease_ttl,
        heartbeat: lease_ttl / 8,
        sweep: lease_ttl / 8,
        ..WorkerConfig::default()
    };
    let (watched, waited) = (Client::new(store.clone()), all(store).await?);
    let until_ended = async move {
        for task in waited {
            // The limit only bounds a failure: the test's own is shorter.
            let _ = watched.wait(task.id, Duration::from_mins(10)).await;
        }
    };
    Worker::builder(store.clone()).config(config).state(crowd).handle(work).run(until_ended).await?;
    for task in all(store).await? {
        let ended = task.ended_at.unwrap_or_default().as_ms();
        let error = task.error.unwrap_or_default();
        println!("{} attempt {} crashes {} ended {ended} {error}", task.state, task.attempt, task.crashes);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("which store?")?;
    let what = arguments.next().context("enqueue, first or run?")?;
    let number: u32 = arguments.next().context("how many?")?.parse()?;
    let settings = Settings::read(arguments)?;
    let store = open(&url, &settings, what != "enqueue").await?;
    match what.as_str() {
        "enqueue" => {
            for batch in tasks(number, &settings)?.chunks(BATCH) {
                Client::new(store.clone()).enqueue_all_raw(batch.to_vec()).await?;
            }
            store.close().await?;
        }
        "first" | "run" => {
            let crowd = Crowd { is_first: what == "first", slots: number, ..Crowd::default() };
            run(&store, crowd, &settings).await?;
        }
        other => bail!("unknown command {other:?}"),
    }
    Ok(())
}
