//! A broker, a configuration file and a process.

use std::{fs, path::Path, time::Duration};

use e2e::process::{self, Process, START_LIMIT};
use tokio::sync::mpsc;
use windlass_amqp::{Consumer, Consumers, Delivery, Message, PublisherOptions, Queue, inspect};
use windlass_scratch::{Node, shared_node};

/// The shared broker.
pub fn node() -> Node {
    shared_node().unwrap()
}

/// A name that no other test of the run has.
pub fn name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// Starts `windlass consume` with a file in this folder and waits until it consumes.
pub fn consume(folder: &Path, url: &str, lists: &str) -> Process {
    consume_with(folder, url, lists, &[], &[])
}

/// The same with further arguments and variables.
pub fn consume_with(
    folder: &Path,
    url: &str,
    lists: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Process {
    let file = folder.join("windlass.toml");
    fs::write(&file, format!("store = \"sqlite:{}/windlass.db\"\n{lists}", folder.display())).unwrap();
    let mut command = process::command(process::windlass().unwrap());
    command.args(["consume", "--allow-target", "127.0.0.0/8", "--config"]).arg(&file);
    command.args(arguments).envs(variables.iter().copied());
    command.env("WINDLASS_AMQP_URL", url).current_dir(folder);
    let mut process = Process::start(command).unwrap();
    let started = process.wait_for(START_LIMIT, |line| line.contains("consuming ").then_some(()));
    started.unwrap();
    process
}

/// Publishes numbered messages with ids of the same number.
pub async fn publish(url: &str, queue: &str, count: usize) {
    let running = Consumers::connect(url).queue(Queue::durable(queue)).start().await.unwrap();
    let publisher = running.publisher(PublisherOptions::default());
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..count {
        let (publisher, queue) = (publisher.clone(), queue.to_owned());
        sending.spawn(async move {
            let message = Message::json(&number).unwrap().id(format!("id-{number}"));
            publisher.publish("", &queue, &message).await.unwrap();
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent.unwrap();
    }
    running.stop(Duration::from_secs(5)).await;
}

/// Takes `count` messages out of a queue; returns their ids.
pub async fn left(url: &str, queue: &str, count: usize) -> Vec<String> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let on = move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(delivery.message_id().unwrap_or_default().to_owned());
        }
    };
    let running = Consumers::connect(url).consume(Consumer::raw(queue, on)).start().await.unwrap();
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.push(received.recv().await.unwrap());
    }
    running.stop(Duration::from_secs(5)).await;
    ids
}

/// The number of waiting messages in a queue, and of consumers.
pub async fn look(url: &str, queue: &str) -> (u32, u32) {
    inspect(url, &[queue.to_owned()]).await.unwrap().remove(0).found.unwrap()
}
