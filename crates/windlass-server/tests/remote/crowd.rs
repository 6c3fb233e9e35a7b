//! BOUNDED: a thousand idle streams and ten streams that their workers do not read, while one worker works.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tonic::{Streaming, codegen::tokio_stream::wrappers::ReceiverStream};
use windlass_conformance::Harness;
use windlass_core::{NewTask, Payload, Rules, State, Store, WorkerId, store::Filter};
use windlass_proto::v1::{self, settlement, work_down, work_up, workers_client::WorkersClient};
use windlass_sqlite::Durability;

use crate::{
    harness::Served,
    sqlite::support::SqliteHarness,
    stock::{Stream, introduction, workers},
    wire::Wire,
};

/// Idle streams, spread over `CONNECTIONS`: the server allows 256 on each connection.
const IDLE: usize = 1_000;
const CONNECTIONS: usize = 4;
/// Workers that ask for more tasks than there are, and read nothing.
const SLOW: usize = 10;
/// Bytes that the server may send to a slow reader before that reads.
const WINDOW_BYTES: u32 = 1 << 10;
/// Most tasks that the server may lease to a worker that reads nothing: those that count as unread, the next
/// claim, and two claims that were taken from the queue to be sent; a claim has at most 256.
const UNREAD_MAX: usize = 1_024 + 3 * 256;
/// Most bytes of large payloads that the server may lease to such a worker: one claim unread, the next one,
/// and the one that is being sent.
const LARGE_UNREAD_MAX_BYTES: usize = 3 * (4 << 20);
const TASKS: usize = 20_000;
const PAYLOAD_BYTES: usize = 100;
/// Most memory for one stream. Both of its ends are in this process.
const STREAM_MAX_BYTES: u64 = 64 << 10;

fn hello(kind: &str, host: String) -> v1::Hello {
    let register = v1::RegisterRequest { kinds: vec![kind.into()], host, ..introduction() };
    v1::Hello { register: Some(register), ..Default::default() }
}

fn credit(tasks: u64) -> work_up::Message {
    work_up::Message::Credit(v1::Credit { tasks })
}

/// Memory of this process that is in use.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// How many tasks each worker holds.
async fn held(store: &dyn Store) -> BTreeMap<WorkerId, usize> {
    let filter = Filter { state: Some(State::Running), ..Filter::default() };
    let (mut held, mut after) = (BTreeMap::new(), None);
    loop {
        let page = store.tasks(&filter, after, 1_000).await.unwrap();
        for task in &page.tasks {
            *held.entry(task.worker.unwrap()).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            return held;
        }
    }
}

/// Idle streams; each has received its welcome.
async fn idle_streams(url: &str) -> Vec<Stream> {
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = workers(url).await;
        for n in 0..IDLE / CONNECTIONS {
            let mut stream = Stream::over(&mut client, hello("idle", format!("idle-{n}"))).await;
            assert!(matches!(stream.next().await, work_down::Message::Welcome(_)));
            stream.say(credit(1)).await;
            streams.push(stream);
        }
    }
    streams
}

/// A worker that never reads, not even its welcome.
struct Slow {
    _say: tokio::sync::mpsc::Sender<v1::WorkUp>,
    _told: Streaming<v1::WorkDown>,
}

impl Slow {
    async fn open(url: &str, n: usize) -> Self {
        let (wire, origin) = Wire::narrow(url, WINDOW_BYTES).await;
        let (say, said) = tokio::sync::mpsc::channel(8);
        for message in [work_up::Message::Hello(hello("a", format!("slow-{n}"))), credit(1 << 40)] {
            say.send(v1::WorkUp { message: Some(message) }).await.unwrap();
        }
        let mut client = WorkersClient::with_origin(wire, origin);
        let told = client.work(ReceiverStream::new(said)).await.unwrap().into_inner();
        Self { _say: say, _told: told }
    }
}

/// A worker that reads its stream and ends its tasks.
struct Normal {
    worker_id: String,
    stream: Stream,
    /// Ends for the next batch, how many are being written, and how many are written.
    ends: Vec<v1::Settlement>,
    writing: usize,
    done: usize,
    batch_no: u64,
}

impl Normal {
    const SLOTS: usize = 100;

    async fn open(url: &str) -> Self {
        let mut stream = Stream::over(&mut workers(url).await, hello("a", "normal".into())).await;
        let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
        stream.say(credit(Self::SLOTS as u64)).await;
        Self { worker_id: welcome.worker_id, stream, ends: Vec::new(), writing: 0, done: 0, batch_no: 0 }
    }

    /// Ends tasks until none is ready and only the slow readers hold any. `tasks` is the number of all tasks.
    async fn work(&mut self, store: &dyn Store, tasks: usize) {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                message = self.stream.next() => self.take(message).await,
                _ = look.tick() => {
                    let lanes = store.lane_records().await.unwrap();
                    let depth = lanes.iter().find(|lane| lane.kind.as_str() == "a").unwrap().depth;
                    if self.writing > 0 || depth.ready > 0 {
                        continue;
                    }
                    let held = held(store).await;
                    // Tasks that the server has sent to this worker are still to arrive.
                    let is_held_by_others = held.keys().all(|worker| worker.to_string() != self.worker_id);
                    if is_held_by_others && held.values().sum::<usize>() + self.done == tasks {
                        return;
                    }
                }
            }
        }
    }

    async fn take(&mut self, message: work_down::Message) {
        match message {
            work_down::Message::Tasks(tasks) => self.ends.extend(tasks.tasks.into_iter().map(done)),
            work_down::Message::Settled(batch) => {
                assert!(batch.settled.as_ref().is_some_and(|done| done.fenced.is_empty()), "{batch:?}");
                self.done += std::mem::take(&mut self.writing);
                self.stream.say(credit((self.done + self.ends.len() + Self::SLOTS) as u64)).await;
            }
            other => panic!("{other:?}"),
        }
        if self.writing == 0 && !self.ends.is_empty() {
            self.batch_no += 1;
            self.writing = self.ends.len();
            let items = std::mem::take(&mut self.ends);
            let worker_id = self.worker_id.clone();
            let batch = v1::SettleBatch { worker_id, settler_no: 0, batch_no: self.batch_no, items };
            self.stream.say(work_up::Message::Settle(batch)).await;
        }
    }
}

fn done(task: v1::ClaimedTask) -> v1::Settlement {
    let lease = task.lease.unwrap();
    v1::Settlement {
        held: Some(v1::Held { task_id: lease.task_id, lease: lease.lease }),
        end: Some(settlement::End::Done(v1::Done::default())),
        ..Default::default()
    }
}

async fn beat(stream: &mut Stream) {
    stream.say(work_up::Message::Heartbeat(v1::HeartbeatRequest::default())).await;
    let work_down::Message::Heartbeat(answer) = stream.next().await else { panic!("no answer") };
    assert!(answer.error.is_none(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_read_holds_few_large_payloads() {
    const LARGE_BYTES: usize = 512 << 10;
    const LARGE: usize = 100;
    let store = SqliteHarness::new(Durability::Normal).open(Rules::default()).await;
    let served = Served::start(Arc::clone(&store)).await;
    let slow = Slow::open(&served.url, 0).await;
    let task = NewTask::new("a", Payload::bytes(vec![0; LARGE_BYTES])).unwrap();
    store.enqueue(vec![task; LARGE]).await.unwrap();
    while held(&*store).await.is_empty() {
        tokio::task::yield_now().await;
    }
    let mut normal = Normal::open(&served.url).await;
    normal.work(&*store, LARGE).await;
    let unread = held(&*store).await.into_values().sum::<usize>();
    assert!(unread > 0 && unread * LARGE_BYTES <= LARGE_UNREAD_MAX_BYTES, "{unread} payloads");
    assert_eq!(normal.done + unread, LARGE);
    drop((slow, normal));
    served.end().await;
}

/// The wait: more than half of a lease, and less than all of it.
const MOST_OF_A_LEASE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn idle_and_unread_streams_do_not_affect_a_normal_worker() {
    let harness = SqliteHarness::new(Durability::Normal);
    let store = harness.open(Rules::default()).await;
    let served = Served::start(Arc::clone(&store)).await;
    // The first connections allocate more than their streams need: open and close some before measuring.
    drop(idle_streams(&served.url).await);
    let before = resident_bytes();
    let mut idle = idle_streams(&served.url).await;
    let stream_bytes = resident_bytes().saturating_sub(before) / IDLE as u64;
    println!("an idle stream costs {stream_bytes} bytes, both ends together");
    assert!(stream_bytes < STREAM_MAX_BYTES);

    let mut slow = Vec::new();
    for n in 0..SLOW {
        slow.push(Slow::open(&served.url, n).await);
    }
    let task = NewTask::new("a", Payload::bytes(vec![0; PAYLOAD_BYTES])).unwrap();
    for _ in 0..TASKS / 1_000 {
        store.enqueue(vec![task.clone(); 1_000]).await.unwrap();
    }
    while held(&*store).await.len() < SLOW {
        tokio::task::yield_now().await;
    }
    let mut normal = Normal::open(&served.url).await;
    normal.work(&*store, TASKS).await;
    let unread = held(&*store).await;
    println!("the slow readers hold {:?}, the normal worker has ended {}", unread.values(), normal.done);
    assert_eq!(unread.len(), SLOW);
    assert!(unread.values().all(|n| *n <= UNREAD_MAX), "{unread:?}");
    assert_eq!(unread.values().sum::<usize>() + normal.done, TASKS);

    // All slow readers but one reconnect and hold no task; that one never returns.
    let (dead, back) = unread.iter().next_back().map(|(id, n)| (*id, *n)).unwrap();
    for (id, n) in unread.iter().filter(|(id, _)| **id != dead) {
        let hello = v1::Hello { worker_id: id.to_string(), ..hello("a", "slow".into()) };
        let mut stream = Stream::over(&mut workers(&served.url).await, hello).await;
        let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
        assert_eq!(welcome.handed_back, *n as u64);
    }
    normal.work(&*store, TASKS).await;
    assert_eq!(held(&*store).await, BTreeMap::from([(dead, back)]));
    for _ in 0..2 {
        for stream in idle.iter_mut().chain([&mut normal.stream]) {
            beat(stream).await;
        }
        harness.advance(MOST_OF_A_LEASE).await;
    }
    let mut moved = 0;
    loop {
        let report = store.expire_workers(1_000).await.unwrap();
        moved += report.moved;
        if !report.more {
            break;
        }
    }
    assert_eq!(moved, back as u64);
    normal.work(&*store, TASKS).await;
    assert_eq!((normal.done, held(&*store).await.len()), (TASKS, 0));
    assert_eq!(store.audit().await.unwrap(), []);
    drop((idle, slow, normal));
    served.end().await;
}
