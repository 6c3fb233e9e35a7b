//! Prints how many bytes the pool of a RabbitMQ consumer takes with 1, 32 and 100 workers. Every worker
//! is busy, and the buffer is full of empty messages. `windlass-bench amqp` runs it. It is a separate
//! program because its counting allocator would slow down the benches.

use std::{
    alloc::System,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use cap::Cap;
use serde_json::{Map, Value};
use windlass_amqp::{Consumer, Delivery, Footprint};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Numbers of workers.
const WORKERS: [usize; 3] = [1, 32, 100];

fn main() -> anyhow::Result<()> {
    // One thread, so that no other thread allocates meanwhile.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut figures = Map::new();
    for workers in WORKERS {
        // A first run allocates what a process needs once, such as the slots of thread-locals: that is
        // not the pool's.
        runtime.block_on(bytes(workers))?;
        figures.insert(workers.to_string(), runtime.block_on(bytes(workers))?.into());
    }
    println!("{}", Value::Object(figures));
    Ok(())
}

/// Bytes in use while every worker is busy and the buffer is full.
async fn bytes(workers: usize) -> anyhow::Result<usize> {
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let consumer = Consumer::raw("queue", move |_: Delivery| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>()
    });
    let consumer = consumer.workers(i64::try_from(workers)?);
    let before = ALLOCATOR.allocated();
    let footprint = Footprint::fill(consumer)?;
    while started.load(Ordering::Relaxed) < workers {
        tokio::task::yield_now().await;
    }
    let taken = ALLOCATOR.allocated() - before;
    drop(footprint);
    Ok(taken)
}
