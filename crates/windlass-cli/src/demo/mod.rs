//! `windlass demo`: a load test to watch, with many slow sites, a job for each, and a site process that
//! does its own counting.
//!
//! Reading order: `site` (the sites, in a process of their own), `witness` (the demo's end of that
//! process), `stock` and `visits` (jobs, tasks and their handler), `room` (a store of its own), `stage`
//! (starts and stops all of them), `figures` and `board` (the result).

mod board;
mod dice;
mod figures;
mod room;
mod site;
mod stage;
mod stock;
mod visits;
mod witness;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use windlass::{lifecycle::Signals, shutdown_signal};

use self::{
    board::Counts,
    figures::{Figures, Plan, ratio, round},
    site::Report,
    stage::Stage,
};
use crate::{
    args::given,
    config::{Setting, setting::Raw, table},
    failure::Exit,
    session::Session,
};

pub use self::site::{SiteArgs, run as run_site};

/// The figures leave out this share of the run at its start. By then the starts of tasks are spread out.
const RAMP_UP_SHARE: f64 = 0.2;
const RAMP_UP_MAX: Duration = Duration::from_secs(10);
/// Pause between two drawings of the screen.
const FRAME: Duration = Duration::from_millis(500);

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How long it runs; Ctrl-C ends it early
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// How many sites, each with a job of its own
    #[arg(long, value_name = "N", default_value_t = 62, value_parser = clap::value_parser!(u32).range(1..=500))]
    jobs: u32,
    /// How many requests each site may have open at once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    concurrency: u32,
    /// A preset of slots: production 500, staging 60, development 10
    #[arg(long, value_name = "production|staging|development", default_value = "production")]
    env: String,
}

impl DemoArgs {
    /// The settings among them.
    pub fn flags(&self) -> Vec<(&'static Setting, Raw)> {
        given([(&table::ENV, Some(&self.env))])
    }
}

/// Runs the demo and prints the result. `store` is `--store` as the user typed it; without it the demo
/// makes a store of its own.
pub async fn run(session: &Session, store: Option<&str>, args: &DemoArgs) -> anyhow::Result<Exit> {
    let out = session.out;
    let slots = session.settings.number(&table::SLOTS) as u32;
    let plan = Plan { jobs: args.jobs, concurrency: args.concurrency, slots };
    // Listen for signals before the title is printed: a reader of that line may send one at once.
    let signals = shutdown_signal();
    let mut stage = Stage::start(session, store, plan).await?;
    if !out.is_json() {
        out.note(board::title(plan));
    }
    let length = Duration::from_secs(u64::from(args.seconds));
    let run = watch(session, &mut stage, plan, length, signals).await.inspect_err(|_| out.end_block(&[]))?;
    let counts = counts(&stage);
    let figures = Figures::between(plan, &run.from, &run.to);
    out.end_block(&board::lines(plan, &figures, &run.to, counts));
    let slots_peak = stage.visits.peak();
    stage.stop().await?;

    let most_seen = figures::max_concurrency_seen(&run.to);
    if out.is_json() {
        out.json(&to_json(plan, &figures, counts, most_seen, slots_peak))?;
    } else {
        let pages = run.to.hosts.iter().map(|host| host.done).sum();
        out.line(board::summary(plan, &figures, run.took.as_secs_f64(), pages, most_seen))?;
    }
    Ok(if most_seen > plan.concurrency { Exit::Failed } else { Exit::Done })
}

/// The run as the site counted it.
struct Run {
    /// Where the figures start: after the ramp-up, if the run lasted that long.
    from: Report,
    to: Report,
    took: Duration,
}

/// Watches until the time is up, the user presses Ctrl-C, or something fails.
async fn watch(
    session: &Session,
    stage: &mut Stage,
    plan: Plan,
    length: Duration,
    mut signals: Signals,
) -> anyhow::Result<Run> {
    let start = Instant::now();
    let ramp_up = length.mul_f64(RAMP_UP_SHARE).min(RAMP_UP_MAX);
    let mut from = stage.witness.look().await?;
    let mut until = start + ramp_up;
    let mut frames = tokio::time::interval(FRAME);
    loop {
        tokio::select! {
            () = signals.next() => break,
            error = stage.failed() => return Err(error),
            () = sleep_until(until) => {
                if until >= start + length {
                    break;
                }
                from = stage.witness.mark().await?;
                stage.handle.claim_times().clear();
                until = start + length;
            }
            _ = frames.tick(), if session.out.shows_progress() => {
                let now = stage.witness.look().await?;
                let figures = Figures::between(plan, &from, &now);
                session.out.draw_block(&board::lines(plan, &figures, &now, counts(stage)));
            }
        }
    }
    Ok(Run { from, to: stage.witness.look().await?, took: start.elapsed() })
}

fn counts(stage: &Stage) -> Counts {
    Counts {
        claim_p99_ms: stage.handle.claim_times().p99().as_secs_f64() * 1e3,
        retries: stage.visits.retries(),
    }
}

fn to_json(plan: Plan, figures: &Figures, counts: Counts, most_seen: u32, slots_peak: u32) -> Value {
    let share = |rate| round(ratio(rate, figures.mean()), 3);
    json!({
        "efficiency": round(figures.efficiency(), 4),
        "per_second": round(figures.per_second, 2),
        "ideal_per_second": round(figures.ideal_per_second, 2),
        "tasks": figures.tasks,
        "seconds": round(figures.seconds, 2),
        "mean_delay_ms": round(figures.mean_delay_ms, 1),
        "max_concurrency_seen": most_seen,
        "min_peak": figures.min_peak,
        "job_min_ratio": share(figures.slowest()),
        "job_max_ratio": share(figures.fastest()),
        "longest_idle_ms": round(figures.longest_idle_ms, 1),
        "claim_p99_ms": round(counts.claim_p99_ms, 2),
        "retries": counts.retries,
        "slots_total": plan.slots,
        "slots_peak": slots_peak,
        "jobs": plan.jobs,
        "concurrency": plan.concurrency,
    })
}
