//! Two servers on one store, three workers, a client, and the tasks that the client enqueues.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    task::{Context as PollContext, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use turmoil::net::{TcpListener, TcpStream};
use windlass::{
    Client, Context, NewTask, Outcome, Payload, Worker,
    admission::AdmissionConfig,
    handler::RawHandler,
    inside::Home,
    worker::{Metrics, WorkerConfig},
};
use windlass_conformance::{Fault, MemoryStore, Staged};
use windlass_core::{
    Event, Rules, State, Store, TaskId, TaskRecord,
    store::{Filter, PAGE_MAX},
};
use windlass_remote::{Duplex, Network, Options, RemoteStore, Servers};
use windlass_server::{Operations, http};

use crate::{
    clock::SimulatedClock,
    dice::Dice,
    judge::{JOB_LIMIT, Judge},
    weather::{Counts, Weather},
};

const SERVERS: u64 = 2;
const WORKERS: u64 = 3;
const PORT: u16 = 7878;
/// The step of simulated time.
const TICK: Duration = Duration::from_millis(5);
/// How long the network has faults.
const BAD_WEATHER: Duration = Duration::from_secs(20);
/// When every task must be done.
const END: Duration = Duration::from_secs(80);
/// The lease of a worker.
const LEASE_TTL: Duration = Duration::from_secs(2);
/// Tasks without a job and a workflow, tasks of a job, workflows and their steps.
const PLAIN: u64 = 12;
const OF_A_JOB: u64 = 12;
const WORKFLOWS: u64 = 3;
const STEPS: u64 = 6;

/// A deliberate defect that the judge must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The store takes ends under old leases.
    NoFence,
    /// A worker goes on after its lease has run out.
    NoSelfFence,
    /// The store gives a worker a task that another worker holds.
    DoubleHandOut,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed; it gives the same run again.
    pub seed: u64,
    /// Promises that were broken.
    pub violations: Vec<String>,
    /// How many network faults there were, by sort.
    pub weather: Counts,
    /// Attempts that ended because their worker lost its lease.
    pub lease_losses: u64,
    /// Attempts that were started.
    pub attempts: u64,
    /// All events, a line each.
    pub story: Vec<String>,
}

#[derive(Clone)]
struct World {
    seed: u64,
    store: Arc<MemoryStore>,
    judge: Arc<Judge>,
    broken: Option<Broken>,
}

/// Runs a fleet with the network faults of a seed.
#[must_use]
pub fn run(seed: u64, broken: Option<Broken>) -> Report {
    let clock = Arc::new(SimulatedClock::default());
    let judge = Judge::new(Arc::clone(&clock));
    let store = Arc::new(store(&clock, broken));
    let world = World { seed, store: Arc::clone(&store), judge: Arc::clone(&judge), broken };
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .simulation_duration(END + TICK * 10)
        .tick_duration(TICK)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(60))
        .tcp_capacity(4096)
        .build();
    for number in 0..SERVERS {
        let world = world.clone();
        sim.host(format!("server-{number}"), move || serve(world.clone(), number));
    }
    for number in 0..WORKERS {
        let world = world.clone();
        sim.host(format!("worker-{number}"), move || work(world.clone(), number));
    }
    sim.client("client", enqueue(world));
    let mut troubles = Weather::new(Dice::new(seed ^ 0x57EA), WORKERS, SERVERS);
    let mut is_calm = false;
    loop {
        clock.set(sim.elapsed());
        if let Err(error) = sim.step() {
            judge.violated(format!("a host failed: {error}"));
        }
        judge.compare(|task| now(store.task(task)));
        let is_over = judge.is_violated() || sim.elapsed() >= END || is_done(&store);
        if is_over {
            break;
        }
        if sim.elapsed() < BAD_WEATHER {
            troubles.blow(&mut sim, &judge);
        } else if !is_calm {
            is_calm = true;
            troubles.calm(&mut sim, &judge);
        }
    }
    // Before the hosts go: their ends do not belong to the story.
    let (mut violations, told) = judge.verdict();
    if violations.is_empty() {
        violations.extend(left_over(&store));
    }
    let model = store.model();
    let count =
        |event: Event| model.moves().iter().filter(|((_, moved), _)| *moved == event).map(|(_, n)| n).sum();
    Report {
        seed,
        violations,
        weather: troubles.counts,
        lease_losses: count(Event::Crash),
        attempts: count(Event::Claim),
        story: told,
    }
}

fn store(clock: &Arc<SimulatedClock>, broken: Option<Broken>) -> MemoryStore {
    let rules = Rules {
        // A worker may die many times here; no task is a suspect for that.
        max_crashes: 10_000,
        max_attempts: 100,
        job_default_concurrency: u32::try_from(JOB_LIMIT).ok(),
        ..Rules::default()
    };
    let clock: Arc<dyn windlass_core::Clock> = Arc::<SimulatedClock>::clone(clock);
    match broken {
        Some(Broken::NoFence) => MemoryStore::with_fault(clock, rules, Fault::FenceIgnored),
        Some(Broken::DoubleHandOut) => MemoryStore::with_fault(clock, rules, Fault::ClaimLeavesReady),
        Some(Broken::NoSelfFence) | None => MemoryStore::new(clock, rules),
    }
}

/// The answer of the store behind the servers. It never waits, so one poll is enough.
fn now<T>(answer: impl Future<Output = windlass_core::Result<Option<T>>>) -> Option<T> {
    match std::pin::pin!(answer).poll(&mut PollContext::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.ok().flatten(),
        Poll::Pending => None,
    }
}

fn all() -> usize {
    usize::try_from(PLAIN + OF_A_JOB + WORKFLOWS * STEPS).unwrap_or(usize::MAX)
}

fn records(store: &MemoryStore) -> Vec<TaskRecord> {
    store.model().tasks(&Filter::default(), None, PAGE_MAX).tasks
}

fn is_done(store: &MemoryStore) -> bool {
    let records = records(store);
    records.len() == all() && records.iter().all(|task| task.state == State::Done)
}

/// What is unfinished in the store long after the last network fault.
fn left_over(store: &MemoryStore) -> Vec<String> {
    let records = records(store);
    let mut found: Vec<String> = records
        .iter()
        .filter(|task| task.state != State::Done)
        .map(|task| format!("NO-STRANDED: {} is {:?} at the end", task.id, task.state))
        .collect();
    if records.len() != all() {
        found.push(format!("ENQ-DURABLE, ENQ-IDEMPOTENT: {} tasks instead of {}", records.len(), all()));
    }
    found
}

fn servers() -> Servers {
    let names: Vec<_> = (0..SERVERS).map(|number| format!("http://server-{number}:{PORT}")).collect();
    names.join(",").parse().unwrap_or_else(|_| unreachable!("these are addresses"))
}

fn options() -> Options {
    Options {
        connect_max: Duration::from_millis(500),
        call_max: Duration::from_secs(2),
        renew_max: Duration::from_millis(500),
        network: Network::Simulated(Arc::new(|name, port| {
            Box::pin(async move {
                let stream = TcpStream::connect((name, port)).await?;
                Ok(Box::new(stream) as Box<dyn Duplex>)
            })
        })),
        ..Options::default()
    }
}

async fn connect() -> Arc<RemoteStore> {
    loop {
        match RemoteStore::for_worker(&servers(), options()).await {
            Ok(store) => return store,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(world: World, number: u64) -> turmoil::Result {
    let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT)).await?;
    let options =
        http::Options { allowed_hosts: vec![format!("server-{number}")], ..http::Options::default() };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let store: Arc<dyn Store> = match world.broken {
        Some(Broken::NoSelfFence) => Arc::new(Staged::new(world.store).lease_ttl(LEASE_TTL)),
        _ => world.store,
    };
    let door = http::Door::new(Operations::new(store), options, address);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(door.serve(stream));
    }
}

async fn work(world: World, number: u64) -> turmoil::Result {
    let handler = Arc::new(Step { world: world.clone() });
    loop {
        let store = connect().await;
        let own_idea = match world.broken {
            // The worker trusts its lease for longer than the store does.
            Some(Broken::NoSelfFence) => LEASE_TTL * 20,
            _ => LEASE_TTL,
        };
        let config = WorkerConfig {
            slots: 4,
            poll_interval: Duration::from_millis(50),
            poll_interval_max: Duration::from_millis(500),
            lease_ttl: own_idea,
            heartbeat: LEASE_TTL / 4,
            sweep: LEASE_TTL / 4,
            metrics: Metrics::Off,
            admission: AdmissionConfig { is_on: false, ..AdmissionConfig::default() },
            home: Home::ThisRuntime(world.seed.wrapping_mul(31).wrapping_add(number)),
            ..WorkerConfig::default()
        };
        let worker = Worker::builder(store).raw("step", handler.clone()).config(config).build()?;
        if let Err(error) = worker.run(std::future::pending::<()>()).await {
            world.judge.tell(&format!("worker-{number} failed: {error}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A step that takes some time and sometimes fails.
struct Step {
    world: World,
}

#[async_trait]
impl RawHandler for Step {
    async fn call(&self, context: Context) -> Outcome {
        let world = &self.world;
        let record = now(world.store.task(context.id()));
        let running = world.judge.started(context.task(), record.as_ref());
        let mut dice = Dice::new(world.seed ^ key(context.id()) ^ u64::from(context.lease()) << 32);
        tokio::time::sleep(dice.time(20..900)).await;
        if dice.below(8) == 0 {
            return Outcome::retry_after(dice.time(10..300), "bad luck");
        }
        running.done();
        Outcome::Done(None)
    }
}

fn key(task: TaskId) -> u64 {
    task.raw().unsigned_abs()
}

/// Enqueues everything, with as many tries as that takes.
async fn enqueue(world: World) -> turmoil::Result {
    let mut dice = Dice::new(world.seed ^ 0xC11E);
    let client = Client::new(connect().await);
    let mut tasks: Vec<(String, Option<String>, Option<String>)> = Vec::new();
    tasks.extend((0..PLAIN).map(|n| (format!("plain-{n}"), None, None)));
    tasks.extend((0..OF_A_JOB).map(|n| (format!("job-{n}"), Some("site".to_owned()), None)));
    // One step of each workflow in turn, so that the workflows advance side by side.
    for step in 0..STEPS {
        tasks.extend((0..WORKFLOWS).map(|n| (format!("flow-{n}-{step}"), None, Some(format!("flow-{n}")))));
    }
    for (name, job, workflow) in tasks {
        loop {
            let task = NewTask::new("step", Payload::bytes("x"))?;
            let mut call = client.enqueue_raw(task).key(name.clone());
            if let Some(job) = &job {
                call = call.job(job);
            }
            if let Some(workflow) = &workflow {
                call = call.workflow(workflow);
            }
            match call.await {
                Ok(enqueued) => {
                    world.judge.tell(&format!("enqueued {name} as {}", enqueued.id));
                    if let Some(workflow) = &workflow {
                        world.judge.appended(workflow, enqueued.id);
                    }
                    break;
                }
                Err(error) => {
                    world.judge.tell(&format!("enqueue of {name}: {error}"));
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        tokio::time::sleep(dice.time(5..400)).await;
    }
    std::future::pending().await
}
