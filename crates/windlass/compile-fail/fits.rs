//! This file compiles. So the other files fail for their own reason and not because a crate is missing.

use windlass::serde::{Deserialize, Serialize};
use windlass::{Context, Outcome, Payload, State, Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct Resize {
    width: u32,
}

#[derive(Clone)]
struct Disk;
#[derive(Clone)]
struct Cache;

async fn payload_only(_: Resize) -> Result<(), String> {
    Ok(())
}

async fn with_context(_: Resize, ctx: Context) -> Result<Outcome, std::fmt::Error> {
    Ok(Outcome::cancel(format!("attempt {}", ctx.attempt())))
}

async fn with_state(_: Resize, _: State<Disk>) -> Result<Payload, &'static str> {
    Ok(Payload::bytes("x"))
}

async fn with_all(_: Resize, _: Context, _: State<Cache>, State(_): State<Disk>) -> Outcome {
    Outcome::Done(None)
}

pub fn workers(store: windlass::store::SharedStore) {
    let builder = || WorkerBuilder::new(store.clone()).state(Disk).state(Cache);
    let _ = builder().handle(payload_only);
    let _ = builder().handle(with_context);
    let _ = builder().handle(with_state);
    let _ = builder().handle(with_all);
    let _ = builder().handle(|resize: Resize| async move { Err::<(), _>(format!("{}", resize.width)) });
    let _ = builder().handle_kind("by name", async |_: Vec<u8>, _: Context| {});
}
