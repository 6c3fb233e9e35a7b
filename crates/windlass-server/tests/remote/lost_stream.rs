//! Streams that end before the worker has read the tasks in them.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream, tcp},
    sync::{mpsc, watch},
    task::JoinSet,
};
use windlass_core::{State, Store};

use crate::{
    harness::Served,
    push::{Hand, all_done, store, task, told},
};

/// The state of a hose.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Whether bytes from the server are held back.
    is_held: bool,
    /// How often the connections were cut. A connection from before the last cut is closed.
    cuts: u32,
}

/// A proxy between a worker and its server, which can hold back bytes from the server.
struct Hose {
    url: String,
    flow: watch::Sender<Flow>,
    _accepting: JoinSet<()>,
}

impl Hose {
    async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (flow, seen) = watch::channel(Flow::default());
        let server = server.trim_start_matches("http://").to_owned();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                connections.spawn(carry(client, server, seen.clone()));
            }
        });
        Self { url, flow, _accepting: accepting }
    }

    fn hold(&self) {
        self.flow.send_modify(|flow| flow.is_held = true);
    }

    /// Closes the connections and loses the bytes that were held back. New connections work as usual.
    fn cut(&self) {
        self.flow.send_modify(|flow| *flow = Flow { is_held: false, cuts: flow.cuts + 1 });
    }
}

async fn carry(client: TcpStream, server: TcpStream, flow: watch::Receiver<Flow>) {
    let cuts = flow.borrow().cuts;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = async {
        tokio::join!(up(from_client, to_server), down(from_server, to_client, flow.clone(), cuts));
    };
    let mut seen = flow.clone();
    tokio::select! {
        () = both => {}
        _ = seen.wait_for(|flow| flow.cuts != cuts) => {}
    }
}

async fn up(mut from: tcp::OwnedReadHalf, mut to: tcp::OwnedWriteHalf) {
    let _ = copy(&mut from, &mut to).await;
}

async fn down(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
    cuts: u32,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes).await {
        match flow.wait_for(|flow| !flow.is_held || flow.cuts != cuts).await {
            Ok(now) if now.cuts == cuts => {}
            _ => return,
        }
        if to.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_lost_with_a_stream_go_back_when_the_next_one_opens() {
    let store = store();
    let served = Served::start(store.clone()).await;
    let hose = Hose::to(&served.url).await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let (handler, go_on) = told("one", &started, 0);
    let hand = Hand::start(&hose.url, 5, handler).await;
    // A task that the worker has, and continues.
    let kept = store.enqueue(vec![task("a")]).await.unwrap()[0].id;
    starts.recv().await.unwrap();

    hose.hold();
    let lost: Vec<_> =
        store.enqueue(vec![task("a"); 3]).await.unwrap().into_iter().map(|task| task.id).collect();
    for id in &lost {
        while store.task(*id).await.unwrap().unwrap().state != State::Running {
            tokio::task::yield_now().await;
        }
    }
    assert!(starts.try_recv().is_err(), "nothing of it has arrived");
    hose.cut();

    // No lease expires and no comparison is due: only the new stream can report the lost tasks.
    for _ in &lost {
        starts.recv().await.unwrap();
    }
    go_on.add_permits(4);
    all_done(&*store, &lost).await;
    all_done(&*store, &[kept]).await;
    for (id, lease) in lost.iter().map(|id| (*id, 2)).chain([(kept, 1)]) {
        let task = store.task(id).await.unwrap().unwrap();
        assert_eq!((task.lease, task.attempt), (lease, 1), "what was not read is no attempt");
    }
    assert_eq!(store.workers().await.unwrap().len(), 1, "under the same registration");
    hand.end().await;
    served.end().await;
    assert_eq!(store.audit().await.unwrap(), []);
}
