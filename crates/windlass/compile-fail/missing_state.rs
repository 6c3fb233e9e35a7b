//! expect: error[E0277]: this worker has no state of type `Smtp`
//! expect: .handle(send_email)
//! expect: a handler asks for `State<Smtp>`
//! expect: call `.state(value)` with a `Smtp` before `.handle(…)`

use windlass::serde::{Deserialize, Serialize};
use windlass::{Context, State, Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

#[derive(Clone)]
struct Smtp;

async fn send_email(_: SendEmail, _: Context, State(_): State<Smtp>) -> Result<(), String> {
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).state("another state").handle(send_email);
}
