//! What a preset means for a target: how many requests it gets at once.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::Running;

/// Tasks beyond the number of slots: if there were a slot too many, it would have a task to run.
const MORE: u32 = 20;

/// An HTTP target that counts open requests. It answers none until the test says so.
struct Target {
    port: u16,
    open: watch::Receiver<u32>,
    most: Arc<AtomicU32>,
    answer: watch::Sender<bool>,
}

impl Target {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, open) = watch::channel(0);
        let (answer, may_answer) = watch::channel(false);
        let most = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&most);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                listener.set_nonblocking(true).unwrap();
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(request(stream, count.clone(), Arc::clone(&seen), may_answer.clone()));
                }
            });
        });
        Self { port, open, most, answer }
    }

    /// Waits until so many requests are open.
    fn wait_for(&mut self, n: u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.open.wait_for(|open| *open >= n)).unwrap();
    }
}

async fn request(
    mut stream: TcpStream,
    count: watch::Sender<u32>,
    most: Arc<AtomicU32>,
    mut may_answer: watch::Receiver<bool>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    count.send_modify(|open| {
        *open += 1;
        most.fetch_max(*open, Ordering::Relaxed);
    });
    let _ = may_answer.wait_for(|answer| *answer).await;
    // Count before answering: the answer frees the slot, and the next request could arrive before the
    // count.
    count.send_modify(|open| *open -= 1);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
}

/// The numbers of running and ready tasks.
fn figures(up: &Running) -> (u64, u64) {
    let queues = up.say(&["queues", "ls", "--json"]).done().json();
    let depth = &queues["queues"][0]["kinds"][0]["depth"];
    (depth["running"].as_u64().unwrap(), depth["ready"].as_u64().unwrap())
}

/// Checks that a target gets exactly so many requests at once with these settings.
#[track_caller]
fn opens(settings: &str, arguments: &[&str], slots: u32) {
    let mut target = Target::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("windlass.toml"), settings).unwrap();
    let up = Running::up_in(folder, &[&["--allow-target", "127.0.0.0/8"], arguments].concat());
    let payload = format!(r#"{{"url":"http://127.0.0.1:{}/"}}"#, target.port);
    let count = (slots + MORE).to_string();
    up.say(&["enqueue", "http", "--payload", &payload, "--count", &count, "--timeout", "10m"]).done();
    target.wait_for(slots);
    assert_eq!(figures(&up), (u64::from(slots), u64::from(MORE)), "{settings:?} {arguments:?}");
    target.answer.send(true).unwrap();
    while figures(&up) != (0, 0) {}
    assert_eq!(target.most.load(Ordering::Relaxed), slots, "{settings:?} {arguments:?}");
}

#[test]
fn a_target_gets_the_product_of_a_preset_and_no_more() {
    opens("", &["--env", "development"], 10);
    opens("", &["--env", "staging"], 60);
    opens("", &["--env", "production"], 500);
}

#[test]
fn a_target_gets_what_the_worker_concurrency_says() {
    opens("worker_concurrency = 2\n", &["--env", "production"], 200);
    opens("worker_concurrency = 5\n", &["--env", "staging"], 100);
    opens("worker_concurrency = 10\n", &["--env", "production"], 1_000);
}
