//! Messages into the store and to an HTTP target, while the process is killed and stopped.

use std::{
    collections::HashSet,
    path::Path,
    time::{Duration, Instant},
};

use e2e::{
    process::{END_LIMIT, Process, START_LIMIT, Stream},
    target::Target,
    up::Up,
};
use rustix::process::Signal;
use windlass::{Client, store::Filter};
use windlass_scratch::Node;

use crate::rig::{consume, left, look, name, node, publish};

const MESSAGES: usize = 2_000;

fn into_store(queue: &str) -> String {
    format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = 8\nto = \"store\"\nkind = \"ship\"\n"
    )
}

/// The keys of all tasks in the store of a folder.
async fn keys(folder: &Path) -> Vec<String> {
    let store = windlass::open(&format!("sqlite:{}/windlass.db", folder.display())).await.unwrap();
    let client = Client::new(store);
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = client.store().tasks(&Filter::default(), after, 500).await.unwrap();
        for task in page.tasks {
            keys.push(client.task(task.id).await.unwrap().unwrap().key.unwrap());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    client.store().close().await.unwrap();
    keys
}

/// Waits until the queue is empty at the broker, and all its messages are acknowledged.
async fn until_empty(broker: &Node, queue: &str) {
    let (broker, row) = (broker.clone(), format!("{queue}\t0"));
    let look = move || {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !broker.ctl(&["list_queues", "name", "messages"]).unwrap().lines().any(|line| line == row) {
            assert!(Instant::now() < deadline);
        }
    };
    tokio::task::spawn_blocking(look).await.unwrap();
}

fn stop(mut process: Process) -> String {
    process.signal(Signal::TERM).unwrap();
    let status = process.wait(END_LIMIT).unwrap();
    process.join_readers();
    assert_eq!(status.code(), Some(0), "{}", process.transcript());
    process.text(Stream::Err)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_consumer_loses_no_message_and_doubles_no_task() {
    let (broker, queue) = (node(), name("killed"));
    let folder = tempfile::tempdir().unwrap();
    publish(&broker.url(), &queue, MESSAGES).await;
    for _ in 0..3 {
        let mut process = consume(folder.path(), &broker.url(), &into_store(&queue));
        // Some are taken by now, and most are not.
        let left = look(&broker.url(), &queue).await.0;
        process.kill().unwrap();
        assert!(left < MESSAGES as u32);
    }
    let process = consume(folder.path(), &broker.url(), &into_store(&queue));
    until_empty(&broker, &queue).await;
    let said = stop(process);
    assert!(said.contains("0 lost") && !said.contains("lapin"), "{said}");
    assert_eq!(look(&broker.url(), &queue).await, (0, 0), "everything was acknowledged");
    let keys = keys(folder.path()).await;
    let distinct: HashSet<&String> = keys.iter().collect();
    assert_eq!((keys.len(), distinct.len()), (MESSAGES, MESSAGES));
}

/// A server on the store of a folder, at this address.
fn server(folder: &Path, listen: &str) -> Up {
    let mut command = e2e::process::command(e2e::process::windlass().unwrap());
    command.args(["up", "--listen", listen, "--store"]);
    command.arg(format!("sqlite:{}/windlass.db", folder.display())).current_dir(folder);
    Up::start(command).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_of_the_file_gets_all_tasks_despite_a_kill() {
    let (broker, queue) = (node(), name("beside-up"));
    let folder = tempfile::tempdir().unwrap();
    publish(&broker.url(), &queue, MESSAGES).await;
    let mut up = server(folder.path(), "127.0.0.1:0");
    let process = consume(folder.path(), &broker.url(), &into_store(&queue));
    let left = look(&broker.url(), &queue).await.0;
    assert!(left < MESSAGES as u32);
    up.process.kill().unwrap();
    // Meanwhile deliveries wait for the server.
    let address = up.address.strip_prefix("http://").unwrap().to_owned();
    let up = server(folder.path(), &address);
    until_empty(&broker, &queue).await;
    let said = stop(process);
    assert!(said.contains(&format!("tasks go to the server at {}", up.address)), "{said}");
    stop(up.process);
    let keys = keys(folder.path()).await;
    let distinct: HashSet<&String> = keys.iter().collect();
    assert_eq!((keys.len(), distinct.len()), (MESSAGES, MESSAGES));
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_posted_messages_and_hands_back_the_rest() {
    const WORKERS: u32 = 8;
    let (broker, queue) = (node(), name("posted"));
    let folder = tempfile::tempdir().unwrap();
    publish(&broker.url(), &queue, 100).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.hold();
    let url = target.url();
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nworkers = {WORKERS}\n\
         to = \"http\"\nurl = \"{url}\"\n"
    );
    let mut process = consume(folder.path(), &broker.url(), &lists);
    while target.book().open < WORKERS {
        tokio::task::yield_now().await;
    }
    process.signal(Signal::TERM).unwrap();
    process.wait_for(START_LIMIT, |line| line.contains("draining").then_some(())).unwrap();
    target.release();
    let status = process.wait(END_LIMIT).unwrap();
    process.join_readers();
    assert_eq!(status.code(), Some(0), "{}", process.transcript());
    let said = process.text(Stream::Err);
    assert!(said.contains(&format!("stopped: {WORKERS} finished, ")), "{said}");
    assert_eq!(target.book().strangers, WORKERS, "each was posted once");
    assert_eq!(look(&broker.url(), &queue).await, (100 - WORKERS, 0));
    // Every message was either posted or left in the queue, and none both.
    let mut ids = target.book().stranger_keys.clone();
    ids.extend(left(&broker.url(), &queue, 100 - WORKERS as usize).await);
    ids.sort();
    let mut wanted: Vec<String> = (0..100).map(|number| format!("id-{number}")).collect();
    wanted.sort();
    assert_eq!(ids, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_broker_ends_the_start_with_code_5() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windlass.toml");
    std::fs::write(&file, "[[amqp.consumer]]\nqueue = \"q\"\nto = \"http\"\nurl = \"http://127.0.0.1/\"\n")
        .unwrap();
    let mut command = e2e::process::command(e2e::process::windlass().unwrap());
    command.args(["consume", "--amqp", "amqp://user:s3cret@127.0.0.1:1/%2f", "--config"]).arg(&file);
    let said = e2e::process::run(command).unwrap();
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.stderr.contains("127.0.0.1:1") && !said.stderr.contains("s3cret"), "{said:?}");
}
