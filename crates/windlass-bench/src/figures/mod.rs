//! Each bench, with its arguments.

mod affinity;
mod amqp;
mod backlog;
mod bloat;
mod dashboard;
mod drain;
mod enqueue;
mod fleet;
mod hol;
mod jobs;
mod latency;
mod member;
mod memory;
mod pool;
mod pressure;
mod remote;
mod sleep;
mod soak;

use clap::Subcommand;
use serde_json::Value;

use crate::{
    args::{Cli, Common},
    place::Place,
    report::check,
    rig,
};

/// Most tasks of one setting of the sweep.
const SWEEP_TASKS: usize = 60_000;
/// Consumers of the pool, and of the channels that it is compared with.
const POOL_CONSUMERS: usize = 64;
/// Places in their buffers: the pool's default.
const POOL_CAPACITY: usize = 100;

/// Every bench.
#[derive(Debug, Subcommand)]
pub(crate) enum Which {
    /// The in-process pool, compared with the fastest of three bare channels.
    Pool {
        #[command(flatten)]
        common: Common,
        /// Tasks per round.
        #[arg(long, default_value_t = 200_000)]
        tasks: usize,
    },
    /// Head-of-line blocking: every tenth task is fifty times as long.
    Hol {
        #[command(flatten)]
        common: Common,
        /// Stretches or shrinks the task times (1 = 10 s and 200 ms).
        #[arg(long, default_value_t = 0.2)]
        scale: f64,
    },
    /// Tasks that wait 100 ms: which share of the slots' time is spent in handlers?
    Sleep {
        #[command(flatten)]
        common: Common,
        /// Tasks.
        #[arg(long, default_value_t = 5_000)]
        tasks: usize,
        /// Slots.
        #[arg(long, default_value_t = 500)]
        slots: u32,
    },
    /// No-op tasks through the whole engine, compared with a bare SQL loop.
    Drain {
        #[command(flatten)]
        common: Common,
        /// Tasks per round.
        #[arg(long, default_value_t = 100_000)]
        tasks: usize,
        /// Whether ended tasks are kept.
        #[arg(long, default_value = "kept")]
        history: rig::HistoryArg,
        /// Slots; without it a worker's default.
        #[arg(long)]
        slots: Option<u32>,
        /// Whether task events are counted for /metrics.
        #[arg(long, default_value = "on")]
        metrics: rig::MetricsArg,
        /// Over gRPC, compared with the same store used directly.
        #[arg(long)]
        remote: bool,
    },
    /// No-op tasks with metrics and without, in turns.
    Metrics {
        #[command(flatten)]
        common: Common,
        /// Tasks per round.
        #[arg(long, default_value_t = 100_000)]
        tasks: usize,
    },
    /// Tasks that all fail, compared with tasks that all succeed.
    Failures {
        #[command(flatten)]
        common: Common,
        /// Tasks per round.
        #[arg(long, default_value_t = 50_000)]
        tasks: usize,
    },
    /// Single and batch enqueues, compared with one-row commits.
    Enqueue {
        #[command(flatten)]
        common: Common,
        /// Concurrent single callers.
        #[arg(long, default_value_t = 64)]
        callers: usize,
    },
    /// From the enqueue call to the start of the handler on an idle worker.
    Latency {
        #[command(flatten)]
        common: Common,
        /// Enqueues, one at a time.
        #[arg(long, default_value_t = 1_000)]
        tasks: usize,
        /// Pause before each of them.
        #[arg(long, default_value_t = 5)]
        spacing_ms: u64,
        /// Over gRPC: a server, and a client and a worker that know only its address.
        #[arg(long)]
        remote: bool,
    },
    /// Minutes of full load, and a session that holds a snapshot: dead rows, sizes, speed. PostgreSQL
    /// only.
    Bloat {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        plan: bloat::Plan,
    },
    /// Time of a claim with small and large backlogs.
    Backlog {
        #[command(flatten)]
        common: Common,
        /// The large backlog.
        #[arg(long, default_value_t = 1_000_000)]
        waiting: usize,
        /// Claims per case.
        #[arg(long, default_value_t = 2_000)]
        claims: usize,
        /// Finished tasks that are kept, on PostgreSQL.
        #[arg(long, default_value_t = 10_000_000)]
        finished: usize,
    },
    /// The cost of the gate of a job: many small limits, compared with the same tasks without jobs.
    Jobs {
        #[command(flatten)]
        common: Common,
        /// Jobs.
        #[arg(long, default_value_t = 1_000)]
        jobs: usize,
        /// The limit of each.
        #[arg(long, default_value_t = 3)]
        concurrency: u32,
        /// Tasks of each.
        #[arg(long, default_value_t = 100)]
        tasks: usize,
    },
    /// Workflows on three workers over gRPC: the share of steps on the worker of the step before, and
    /// pickup with one full worker.
    Affinity {
        #[command(flatten)]
        common: Common,
        /// Workflows.
        #[arg(long, default_value_t = 100)]
        workflows: usize,
        /// Steps of each.
        #[arg(long, default_value_t = 20)]
        steps: usize,
    },
    /// Memory with many tasks in flight and many waiting.
    Memory {
        #[command(flatten)]
        common: Common,
        /// Sleeping tasks in flight, and slots.
        #[arg(long, default_value_t = 10_000)]
        slots: u32,
        /// The large backlog.
        #[arg(long, default_value_t = 1_000_000)]
        waiting: usize,
        /// Run one part in this process; the bench itself uses it.
        #[arg(long, hide = true)]
        part: Option<memory::Part>,
    },
    /// A steady stream with a short history: the file must stop growing. With --minutes: a mixed load,
    /// with workers killed.
    Soak {
        #[command(flatten)]
        common: Common,
        /// Run plain tasks, jobs, workflows, failures and cancellations for so long, and kill a worker
        /// every minute.
        #[arg(long, conflicts_with_all = ["tasks", "seconds", "history_seconds"])]
        minutes: Option<f64>,
        /// Tasks a second of the mixed load.
        #[arg(long, default_value_t = 200, requires = "minutes")]
        rate: usize,
        /// Tasks in all.
        #[arg(long, default_value_t = 1_000_000)]
        tasks: usize,
        /// Length of the run.
        #[arg(long, default_value_t = 300)]
        seconds: u64,
        /// How long ended tasks are kept.
        #[arg(long, default_value_t = 60)]
        history_seconds: u64,
    },
    /// Many worker processes on one PostgreSQL: their speed together and their shares.
    Fleet {
        #[command(flatten)]
        common: Common,
        /// Numbers of workers.
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
        workers: Vec<usize>,
        /// Tasks per round.
        #[arg(long, default_value_t = 500_000)]
        tasks: usize,
        /// Slots of each worker.
        #[arg(long, default_value_t = 1_000)]
        slots: u32,
        /// What eight idle workers send, and the cost of a single task.
        #[arg(long, conflicts_with_all = ["tasks", "coordinators"])]
        idle: bool,
        /// Sixty-four coordinators in one process, compared with one.
        #[arg(long, conflicts_with = "tasks")]
        coordinators: bool,
        /// Three workers with claims of 10 to 1000 tasks and polls of 50 ms to 1 s.
        #[arg(long)]
        sweep: bool,
    },
    /// Handlers that become ten times as slow and recover, or that together hold more memory than there
    /// is: how many may run.
    Pressure {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        args: pressure::PressureArgs,
    },
    /// Messages of RabbitMQ through the pool, compared with a bare consumer.
    Amqp {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        args: amqp::AmqpArgs,
    },
    /// The dashboard: processor and memory for its viewers, a drain beside them, and pages with a million
    /// tasks.
    Dashboard {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        plan: dashboard::Plan,
    },
    /// A child process of a bench.
    #[command(hide = true)]
    Member {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        args: member::MemberArgs,
    },
    /// Every figure beside its bar, in one table.
    Check {
        /// Smaller numbers: faster, for a first look only.
        #[arg(long)]
        quick: bool,
        /// Only these benches.
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
}

impl Which {
    fn common(&mut self) -> Option<&mut Common> {
        match self {
            Self::Check { .. } => None,
            Self::Pool { common, .. }
            | Self::Hol { common, .. }
            | Self::Sleep { common, .. }
            | Self::Drain { common, .. }
            | Self::Metrics { common, .. }
            | Self::Failures { common, .. }
            | Self::Enqueue { common, .. }
            | Self::Latency { common, .. }
            | Self::Backlog { common, .. }
            | Self::Bloat { common, .. }
            | Self::Jobs { common, .. }
            | Self::Affinity { common, .. }
            | Self::Memory { common, .. }
            | Self::Dashboard { common, .. }
            | Self::Fleet { common, .. }
            | Self::Member { common, .. }
            | Self::Amqp { common, .. }
            | Self::Pressure { common, .. }
            | Self::Soak { common, .. } => Some(common),
        }
    }
}

/// Runs a bench; returns the exit code.
pub(crate) fn run(cli: Cli) -> anyhow::Result<u8> {
    let Cli { store, json, mut which } = cli;
    if let Some(common) = which.common() {
        common.place = Place::new(store)?;
    }
    let figures = match which {
        Which::Check { quick, only } => return check::run(quick, &only, json),
        Which::Pool { common, tasks } => {
            serde_json::to_value(pool::run(tasks, POOL_CONSUMERS, POOL_CAPACITY, common.rounds.max(3))?)?
        }
        Which::Hol { common, scale } => hol::run(&common, scale)?,
        Which::Sleep { common, tasks, slots } => sleep::run(&common, tasks, slots)?,
        Which::Drain { common, tasks, history, slots, metrics, remote } => {
            let shape = drain::Shape { history, slots, metrics: metrics.into() };
            if remote { remote::drain(&common, tasks, shape)? } else { drain::run(&common, tasks, shape)? }
        }
        Which::Metrics { common, tasks } => drain::run_metrics(&common, tasks)?,
        Which::Failures { common, tasks } => drain::run_failing(&common, tasks)?,
        Which::Enqueue { common, callers } => enqueue::run(&common, callers)?,
        Which::Latency { common, tasks, spacing_ms, remote } => {
            let spacing = std::time::Duration::from_millis(spacing_ms);
            if remote {
                remote::latency(&common, tasks, spacing)?
            } else {
                latency::run(&common, tasks, spacing)?
            }
        }
        Which::Backlog { common, waiting, claims, finished } => {
            backlog::run(&common, backlog::Sizes { waiting, claims, finished })?
        }
        Which::Dashboard { common, plan } => dashboard::run(&common, &plan)?,
        Which::Bloat { common, plan } => bloat::run(&common, plan)?,
        Which::Affinity { common, workflows, steps } => {
            affinity::run(&common, affinity::Sizes { workflows, steps })?
        }
        Which::Jobs { common, jobs, concurrency, tasks } => {
            jobs::run(&common, jobs::Sizes { jobs, concurrency, tasks_per_job: tasks })?
        }
        Which::Memory { common, part: Some(part), slots, waiting } => {
            memory::run_part(&common, part, slots, waiting)?
        }
        Which::Memory { common, part: None, slots, waiting } => memory::run(&common, slots, waiting)?,
        Which::Fleet { common, idle: true, .. } => fleet::run_idle(&common)?,
        Which::Fleet { common, coordinators: true, .. } => fleet::run_coordinators(&common)?,
        Which::Fleet { common, sweep: true, tasks, .. } => fleet::run_sweep(&common, tasks.min(SWEEP_TASKS))?,
        Which::Fleet { common, workers, tasks, slots, .. } => fleet::run(&common, &workers, tasks, slots)?,
        Which::Pressure { common, args } => pressure::run(&common, &args)?,
        Which::Amqp { common, args } => {
            amqp::run(&common, &args, json)?;
            return Ok(0);
        }
        Which::Member { common, args } => {
            member::run(&common, &args)?;
            return Ok(0);
        }
        Which::Soak { common, minutes: Some(minutes), rate, .. } => {
            soak::mixed::run(&common, soak::mixed::Plan { minutes, per_second: rate })?
        }
        Which::Soak { common, tasks, seconds, history_seconds, .. } => {
            soak::growth::run(&common, tasks, seconds, history_seconds)?
        }
    };
    print(&figures, json)?;
    Ok(0)
}

/// JSON for programs, one figure a line for people.
fn print(figures: &Value, json: bool) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    match figures {
        _ if json => writeln!(out, "{figures}")?,
        Value::Object(map) => {
            for (name, value) in map {
                writeln!(out, "{name:<24} {value}")?;
            }
        }
        other => writeln!(out, "{other:#}")?,
    }
    Ok(())
}
