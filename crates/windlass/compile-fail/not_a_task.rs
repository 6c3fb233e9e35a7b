//! expect: error[E0277]: `SendEmail` is not a Windlass task
//! expect: this payload has no kind
//! expect: add `#[derive(serde::Serialize, serde::Deserialize, windlass::Task)]` to `SendEmail`

use windlass::worker::WorkerBuilder;
use windlass::serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

async fn send_email(_: SendEmail) -> Result<(), String> {
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
