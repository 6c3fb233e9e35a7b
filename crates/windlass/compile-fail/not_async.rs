//! expect: error[E0277]: a Windlass handler is async; this one returns `Result<(), String>`
//! expect: .handle(send_email)
//! expect: write `async fn`

use windlass::serde::{Deserialize, Serialize};
use windlass::{Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

fn send_email(_: SendEmail) -> Result<(), String> {
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
