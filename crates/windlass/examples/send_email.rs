//! A service that sends mail in the background: typed tasks, shared state, retries, a graceful stop.
//!
//! `cargo run --example send_email`, then Ctrl-C.

use std::{sync::Arc, time::Duration};

use windlass::{Client, Context, State, Task, Worker};

#[derive(serde::Serialize, serde::Deserialize, Task)]
#[task(kind = "send_email", queue = "mail", max_attempts = 5, timeout = "30s")]
struct SendEmail {
    to: String,
    subject: String,
}

/// Stands in for a connection to a mail server.
struct Smtp;

#[derive(Debug, thiserror::Error)]
#[error("the mail server does not answer")]
struct SmtpError;

impl Smtp {
    async fn send(&self, to: &str, subject: &str) -> Result<(), SmtpError> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        println!("to {to}: {subject}");
        Ok(())
    }
}

async fn send_email(mail: SendEmail, ctx: Context, State(smtp): State<Arc<Smtp>>) -> Result<(), SmtpError> {
    println!("task {}, attempt {} of {}", ctx.id(), ctx.attempt(), ctx.max_attempts());
    smtp.send(&mail.to, &mail.subject).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = windlass::open("sqlite::memory:").await?;
    let client = Client::new(store.clone());
    for to in ["ada@example.com", "grace@example.com"] {
        let mail = SendEmail { to: to.into(), subject: "hello".into() };
        client.enqueue(mail).job("tenant-7").await?;
    }

    let report = Worker::builder(store)
        .state(Arc::new(Smtp))
        .handle(send_email)
        .run(windlass::shutdown_signal())
        .await?;
    println!("{report}");
    Ok(())
}
