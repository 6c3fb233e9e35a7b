//! `windlass consume` under load: posted messages, messages that become tasks, and a queue whose consumer is
//! stuck.

use std::{fs, time::Duration};

use e2e::{
    http::Api,
    process::{self, Process, START_LIMIT},
    target::Target,
};
use tokio::task::JoinHandle;
use windlass_amqp::{Consumers, Message, PublisherOptions};
use windlass_scratch::shared_node;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_millis(100);

/// The process and its environment.
pub struct Consuming {
    /// The address of its monitoring endpoint.
    pub address: String,
    /// The queue whose messages are posted.
    pub posted: String,
    /// The queue whose target never answers.
    pub stuck: String,
    _process: Process,
    _targets: [Target; 2],
    _folder: tempfile::TempDir,
    load: JoinHandle<()>,
}

impl Consuming {
    pub fn api(&self) -> Api {
        Api::new(self.address.clone())
    }
}

impl Drop for Consuming {
    fn drop(&mut self) {
        self.load.abort();
    }
}

/// Starts it.
pub async fn start() -> Consuming {
    let url = tokio::task::spawn_blocking(|| shared_node().unwrap()).await.unwrap().url();
    let folder = tempfile::tempdir().unwrap();
    let [posted, kept, stuck] =
        ["posted", "kept", "stuck"].map(|name| format!("{name}-{}", std::process::id()));
    let (target, silent) = (
        Target::start(Duration::from_millis(5)).await.unwrap(),
        Target::start(Duration::ZERO).await.unwrap(),
    );
    silent.hold();
    let queues: String =
        [&posted, &kept, &stuck].map(|name| format!("[[amqp.queue]]\nname = \"{name}\"\n")).concat();
    let consumer = |queue: &str, rest: &str| format!("[[amqp.consumer]]\nqueue = \"{queue}\"\n{rest}\n");
    let lists = [
        queues,
        consumer(
            &posted,
            &format!("event_type = \"order.created\"\nto = \"http\"\nurl = \"{}\"", target.url()),
        ),
        consumer(&kept, "to = \"store\"\nkind = \"ship\""),
        consumer(&stuck, &format!("workers = 1\nprefetch = 1\nto = \"http\"\nurl = \"{}\"", silent.url())),
    ];
    let file = folder.path().join("windlass.toml");
    fs::write(&file, lists.concat()).unwrap();
    let mut command = process::command(process::windlass().unwrap());
    command.args(["consume", "--allow-target", "127.0.0.0/8", "--metrics-listen", "127.0.0.1:0", "--config"]);
    command.arg(&file).env("WINDLASS_AMQP_URL", &url).current_dir(folder.path());
    let mut process = Process::start(command).unwrap();
    let address = process.wait_for(START_LIMIT, |line| {
        let at = line.find("http://127.0.0.1:")?;
        line[at..].trim().strip_suffix("/metrics").map(str::to_owned)
    });
    let load = tokio::spawn(keep_busy(url, [posted.clone(), kept, stuck.clone()]));
    let (address, targets) = (address.unwrap(), [target, silent]);
    Consuming { address, posted, stuck, _process: process, _targets: targets, _folder: folder, load }
}

async fn keep_busy(url: String, queues: [String; 3]) {
    let running = Consumers::connect(url).start().await.unwrap();
    let publisher = running.publisher(PublisherOptions::default());
    // The consuming process declares the queues.
    for number in 0_u32.. {
        for queue in &queues {
            let message = Message::json(&number).unwrap();
            publisher.publish("", queue, &message).await.unwrap();
        }
        tokio::time::sleep(PAUSE).await;
    }
}
