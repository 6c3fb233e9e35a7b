//! Messages of RabbitMQ through the pool: rate and latency, compared with a bare lapin consumer in the
//! same run.

mod adaptive;
mod bare;
mod handlers;
mod memory;
mod noop;
mod restart;
mod series;
mod site;
mod table;

use std::io::Write as _;

use serde_json::{Value, json};

use self::site::Site;
use crate::{
    args::Common,
    rig::{round, runtime},
};

/// Workers of the runs with a handler that waits.
const WORKERS: [usize; 5] = [1, 4, 8, 32, 64];
/// Messages of a round with a handler that does nothing.
const NOOP_MESSAGES: usize = 50_000;
/// Rounds of these per round of the others. They are short, and a busy machine makes their rates vary.
const NOOP_ROUNDS: usize = 3;
/// Messages that wait while the handler changes.
const ADAPTIVE_MESSAGES: usize = 20_000;
/// Messages of the run with a restart.
const RESTART_MESSAGES: usize = 1_000_000;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AmqpArgs {
    /// The broker; without it the bench starts a private node and removes it at the end.
    #[arg(long, value_name = "URL")]
    amqp: Option<String>,
    /// Instead: an adaptive consumer whose handler goes from 10 ms to 500 ms and back.
    #[arg(long)]
    adaptive: bool,
    /// Instead: persistent messages of 1 KB while the broker is restarted once; the bench compares every
    /// id.
    #[arg(long, conflicts_with_all = ["adaptive", "amqp"])]
    restart: bool,
    /// Messages of a round. Without it: 50,000; with --adaptive 20,000 that wait; with --restart
    /// 1,000,000 in all.
    #[arg(long)]
    messages: Option<usize>,
    /// Length of each run with a handler of 100 ms, and of each part of --adaptive.
    #[arg(long)]
    seconds: Option<f64>,
}

/// Measures and prints the figures; for people as a table.
pub(super) fn run(common: &Common, args: &AmqpArgs, json: bool) -> anyhow::Result<()> {
    let site = Site::new(args.amqp.as_deref())?;
    let (runtime, messages) = (runtime()?, |usual: usize| args.messages.unwrap_or(usual).max(1));
    let (figures, shown): (Value, fn(&Value) -> String) = if args.adaptive {
        let plan = adaptive::Plan { waiting: messages(ADAPTIVE_MESSAGES), seconds: args.seconds };
        (runtime.block_on(adaptive::run(&site, plan))?, table::adaptive)
    } else if args.restart {
        (runtime.block_on(restart::run(&site, messages(RESTART_MESSAGES)))?, table::plain)
    } else {
        let sizes = Sizes {
            rounds: common.rounds.max(1),
            messages: messages(NOOP_MESSAGES),
            seconds: args.seconds.unwrap_or(3.0),
        };
        (runtime.block_on(everything(&site, sizes))?, table::everything)
    };
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{figures}")?;
    } else {
        write!(out, "{}", shown(&figures))?;
    }
    Ok(())
}

/// The sizes of the run.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rounds: usize,
    messages: usize,
    seconds: f64,
}

async fn everything(site: &Site, sizes: Sizes) -> anyhow::Result<Value> {
    let mut waiting = Vec::new();
    for workers in WORKERS {
        let measured = handlers::medians(site, workers, sizes.seconds, sizes.rounds).await?;
        waiting.push(json!({
            "workers": workers,
            "per_second": round(measured.per_second, 2),
            "p95_ms": round(measured.p95_ms, 2),
        }));
    }
    let noop = noop::run(site, sizes.messages, sizes.rounds * NOOP_ROUNDS).await?;
    let compared = handlers::sequential_and_concurrent(site, sizes.rounds).await?;
    Ok(json!({
        "handlers_100ms": waiting,
        "noop": noop,
        "pool_bytes": memory::pool_bytes()?,
        "speedup": compared.get("ratio"),
        "sequential_and_concurrent": compared,
        "rounds": sizes.rounds,
    }))
}
