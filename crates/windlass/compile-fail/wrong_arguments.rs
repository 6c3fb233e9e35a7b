//! expect: does not have the arguments of a Windlass handler
//! expect: the payload first, then the context, then the states

use windlass::serde::{Deserialize, Serialize};
use windlass::{Context, Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

async fn send_email(_: Context, _: SendEmail) -> Result<(), String> {
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
