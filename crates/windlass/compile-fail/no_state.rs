//! expect: error[E0277]: this worker has no state of type `String`
//! expect: .handle(send_email)
//! expect: a handler asks for `State<String>`
//! expect: call `.state(value)` with a `String` before `.handle(…)`

use windlass::serde::{Deserialize, Serialize};
use windlass::{Context, State, Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

async fn send_email(_: SendEmail, _: Context, State(_): State<String>) -> Result<(), String> {
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
