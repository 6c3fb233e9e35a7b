//! expect: error[E0277]: a Windlass handler cannot return `Result<u32, String>`
//! expect: return `Result<R, E>` where `R` is `()`, `Payload` or `Outcome`
//! expect: `Outcome::done(&value)` leaves a value behind

use windlass::serde::{Deserialize, Serialize};
use windlass::{Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

async fn send_email(_: SendEmail) -> Result<u32, String> {
    Ok(7)
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
