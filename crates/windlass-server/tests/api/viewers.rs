//! What viewers of the dashboard cost the store. There is no network and no real clock, so the count is exact.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
};
use windlass_conformance::MemoryStore;
use windlass_core::{Name, NewTask, Payload, Rules, Store as _, time::ManualClock};
use windlass_server::{
    Operations,
    http::{Door, Options},
};

/// A page asks for its content this often.
const EVERY: Duration = Duration::from_secs(2);
const ROUNDS: u32 = 5;
/// Pages that are open most, and those that look at the store in most ways.
const PAGES: [&str; 11] = [
    "/",
    "/queues",
    "/queues/mail",
    "/tasks",
    "/tasks?state=dead",
    "/dead",
    "/jobs",
    "/workflows",
    "/schedules",
    "/workers",
    "/access",
];

/// One look of one viewer.
async fn look(door: Arc<Door>, page: &'static str) {
    let (mut viewer, server) = tokio::io::duplex(64 << 10);
    let serving = tokio::spawn(door.serve(server));
    let request = format!(
        "GET {page} HTTP/1.1\r\nhost: 127.0.0.1:7878\r\nwindlass-fragment: 1\r\nconnection: close\r\n\r\n"
    );
    viewer.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    viewer.read_to_end(&mut answer).await.unwrap();
    serving.await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{page}: {}", String::from_utf8_lossy(&answer));
}

/// Calls of the store in some rounds of a page that so many viewers have open.
async fn calls(page: &'static str, viewers: usize) -> u64 {
    let clock = Arc::new(ManualClock::new("2027-01-31T09:30:00Z".parse().unwrap()));
    let store = Arc::new(MemoryStore::new(clock, Rules::default()));
    let mut task = NewTask::new("send-mail", Payload::json(&1).unwrap()).unwrap();
    task.queue = Name::new("queue", "mail").unwrap();
    store.enqueue(vec![task; 3]).await.unwrap();
    let listen: SocketAddr = "127.0.0.1:7878".parse().unwrap();
    let door = Arc::new(Door::new(Operations::new(store.clone()), Options::default(), listen));
    let before = store.calls();
    for _ in 0..ROUNDS {
        let mut looks = JoinSet::new();
        for _ in 0..viewers {
            looks.spawn(look(Arc::clone(&door), page));
        }
        looks.join_all().await;
        tokio::time::advance(EVERY).await;
    }
    store.calls() - before
}

#[tokio::test(start_paused = true)]
async fn a_hundred_viewers_cost_the_store_as_much_as_one() {
    for page in PAGES {
        let (one, hundred) = (calls(page, 1).await, calls(page, 100).await);
        println!("{page}: {one} calls of the store in {ROUNDS} rounds with 1 viewer, {hundred} with 100");
        assert!(one == hundred && one > 0, "{page}: {one} calls with 1 viewer, {hundred} with 100");
    }
}
