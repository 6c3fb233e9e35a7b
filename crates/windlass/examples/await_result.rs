//! Enqueues a task and waits for its output, with the worker in the same process.
//!
//! `cargo run --example await_result`

use windlass::{Client, Outcome, Task, Worker};

#[derive(serde::Serialize, serde::Deserialize, Task)]
struct WordCount {
    text: String,
}

async fn word_count(task: WordCount) -> Result<Outcome, windlass::Error> {
    Outcome::done(&task.text.split_whitespace().count())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = windlass::open("sqlite::memory:").await?;
    let client = Client::new(store.clone());
    let worker = Worker::builder(store).handle(word_count).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run(std::future::pending::<()>()));

    let text = "a task may leave something behind".to_owned();
    let words: usize = client.enqueue(WordCount { text }).output().await?;
    println!("{words} words");

    handle.drain();
    running.await??;
    Ok(())
}
