//! A worker with a task that ends the whole process, for the quarantine test.
//!
//! `aborter STORE enqueue N` enqueues N tasks, one of which calls `abort()`.
//! `aborter STORE enqueue-overflow N` does the same with one that overflows its stack, `enqueue-two` with two
//! that call `abort()`.
//! `aborter STORE run SLOTS` works until every task has ended, unless it is killed before, and prints them.
//! `aborter STORE first SLOTS` does the same, but no task ends before `abort()` is called with every slot
//! taken.
//!
//! The other tasks take a while, so that most tasks claimed with the culprit still run when it ends the
//! process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::sync::Notify;
use windlass::{Client, Context, State, Task, Worker, store::Filter};

/// How long each of the other tasks takes.
const NEIGHBOUR: Duration = Duration::from_millis(300);

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct Work {
    ends_process: Option<Way>,
}

/// How a task ends its process.
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

/// How the culprit knows that every slot is taken.
#[derive(Clone, Default)]
struct Crowd {
    is_first: bool,
    slots: u32,
    running: Arc<AtomicU32>,
    changed: Arc<Notify>,
}

async fn work(work: Work, _context: Context, State(crowd): State<Crowd>) -> Result<(), String> {
    let running = crowd.running.fetch_add(1, Ordering::SeqCst) + 1;
    if running >= crowd.slots {
        crowd.changed.notify_one();
    }
    if let Some(way) = work.ends_process {
        if crowd.is_first {
            crowd.changed.notified().await;
        }
        way.go();
    }
    if crowd.is_first {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(NEIGHBOUR).await;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("which store?")?;
    let what = arguments.next().context("enqueue, first or run?")?;
    let number: u32 = arguments.next().context("how many?")?.parse()?;
    let store = windlass::open(&url).await?;
    let client = Client::new(store.clone());
    match what.as_str() {
        "enqueue" | "enqueue-overflow" | "enqueue-two" => {
            let way = if what == "enqueue-overflow" { Way::Overflow } else { Way::Abort };
            // Among the first claimed tasks, so that the first crash happens with all slots taken.
            let culprit = number / 4;
            let second = (what == "enqueue-two").then_some(number / 3);
            client
                .enqueue_all(
                    (0..number)
                        .map(|n| Work { ends_process: (n == culprit || Some(n) == second).then_some(way) }),
                )
                .await?;
            store.close().await?;
        }
        "first" | "run" => {
            let crowd = Crowd { is_first: what == "first", slots: number, ..Crowd::default() };
            let all = store.tasks(&Filter::default(), None, 1_000).await?.tasks;
            let watched = client.clone();
            let until_ended = async move {
                for task in all {
                    // This limit only bounds a failure: the test's own is shorter.
                    let _ = watched.wait(task.id, Duration::from_mins(10)).await;
                }
            };
            Worker::builder(store.clone()).state(crowd).handle(work).slots(number).run(until_ended).await?;
            for task in store.tasks(&Filter::default(), None, 1_000).await?.tasks {
                let error = task.error.unwrap_or_default();
                println!("{} attempt {} crashes {} {error}", task.state, task.attempt, task.crashes);
            }
        }
        other => bail!("unknown command {other:?}"),
    }
    Ok(())
}
