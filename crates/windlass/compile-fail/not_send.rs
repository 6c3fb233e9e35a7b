//! expect: error: future cannot be sent between threads safely
//! expect: future returned by `send_email` is not `Send`
//! expect: future is not `Send` as this value is used across an await
//! expect: has type `Rc<String>` which is not `Send`

use std::rc::Rc;

use windlass::serde::{Deserialize, Serialize};
use windlass::{Task, worker::WorkerBuilder};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
struct SendEmail {
    to: String,
}

async fn send_email(mail: SendEmail) -> Result<(), String> {
    let to = Rc::new(mail.to);
    std::future::ready(()).await;
    drop(to);
    Ok(())
}

pub fn worker(store: windlass::store::SharedStore) {
    let _ = WorkerBuilder::new(store).handle(send_email);
}
