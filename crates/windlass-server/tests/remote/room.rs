//! S7: large messages count against the budget of bodies in memory, over calls and over streams.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use prost::Message;
use tokio::{sync::mpsc, task::JoinHandle};
use tonic::{Code, Status, body::Body, codegen::tokio_stream::wrappers::ReceiverStream};
use tower_service::Service;
use windlass_conformance::{MemoryStore, harness::START};
use windlass_core::{State, Store, store::Filter, time::ManualClock};
use windlass_proto::v1::{self, tasks_client::TasksClient, work_down, work_up};
use windlass_server::http::Options;

use crate::{
    harness::Served,
    stock::{Stream, introduction, workers},
    wire::Wire,
};

const LARGE_BYTES: usize = 900 << 10;
/// Room for two large messages. The rest is too little for another message that counts.
const BUDGET_BYTES: usize = (2 * (LARGE_BYTES + (1 << 10))) + (32 << 10);

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(ManualClock::new(START)), windlass_core::Rules::default()))
}

fn enqueue(payload_bytes: usize) -> v1::EnqueueRequest {
    let payload = Some(v1::Payload { encoding: 1, data: vec![7; payload_bytes] });
    v1::EnqueueRequest { task: Some(v1::NewTask { kind: "a".into(), payload, ..Default::default() }) }
}

async fn tasks(url: &str) -> TasksClient<Wire> {
    let (wire, origin) = Wire::connect(url).await;
    TasksClient::with_origin(wire, origin)
}

async fn count(store: &MemoryStore) -> usize {
    store.tasks(&Filter::default(), None, 1_000).await.unwrap().tasks.len()
}

/// A large enqueue that has sent only its first half.
struct Half {
    say: mpsc::Sender<Result<Frame<Bytes>, Infallible>>,
    rest: Bytes,
    answer: JoinHandle<Response<Incoming>>,
}

impl Half {
    async fn start(url: &str) -> Self {
        let (mut wire, origin) = Wire::connect(url).await;
        let message = enqueue(LARGE_BYTES).encode_to_vec();
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&message);
        let mut bytes = Bytes::from(bytes);
        let (say, said) = mpsc::channel(8);
        let request = Request::post(format!("{origin}windlass.v1.Tasks/Enqueue"))
            .header("content-type", "application/grpc")
            .body(Body::new(StreamBody::new(ReceiverStream::new(said))))
            .unwrap();
        let answer = tokio::spawn(async move { wire.call(request).await.unwrap() });
        // The head of the message is sent in two pieces, which is allowed.
        for piece in [2, 100, LARGE_BYTES / 2] {
            say.send(Ok(Frame::data(bytes.split_to(piece)))).await.unwrap();
        }
        Self { say, rest: bytes, answer }
    }

    async fn finish(self) -> Code {
        self.say.send(Ok(Frame::data(self.rest.clone()))).await.unwrap();
        self.answer().await
    }

    async fn answer(self) -> Code {
        let Self { say, answer, .. } = self;
        drop(say);
        let response = answer.await.unwrap();
        if let Some(told) = Status::from_header_map(response.headers()) {
            return told.code();
        }
        let trailers = response.into_body().collect().await.unwrap().trailers().unwrap().clone();
        Status::from_header_map(&trailers).unwrap().code()
    }
}

#[tokio::test]
async fn calls_and_streams_share_the_budget_of_bodies() {
    let store = store();
    let options = Options { bodies_max_bytes: BUDGET_BYTES, ..Options::default() };
    let served = Served::with(store.clone(), options).await;
    let mut client = tasks(&served.url).await;
    client.enqueue(enqueue(1)).await.unwrap();
    let hello = v1::Hello { register: Some(introduction()), ..Default::default() };
    let mut stream = Stream::over(&mut workers(&served.url).await, hello).await;
    assert!(matches!(stream.next().await, work_down::Message::Welcome(_)));
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 1 })).await;
    let lease = stream.tasks().await.remove(0).lease;

    let halves = [Half::start(&served.url).await, Half::start(&served.url).await];
    // Until both have reserved their room, there may be room for one more.
    let mut added = 1;
    let refused = loop {
        match client.enqueue(enqueue(LARGE_BYTES)).await {
            Ok(_) => added += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "too many large requests at once"));
    client.enqueue(enqueue(1)).await.unwrap();
    let beat = || work_up::Message::Heartbeat(v1::HeartbeatRequest::default());
    stream.say(beat()).await;
    assert!(matches!(stream.next().await, work_down::Message::Heartbeat(_)), "small ones go through");

    let output = Some(v1::Payload { encoding: 1, data: vec![7; 60 << 10] });
    stream.say(work_up::Message::Complete(v1::CompleteRequest { lease, output })).await;
    let early = tokio::time::timeout(Duration::from_millis(50), stream.next()).await;
    assert!(early.is_err(), "a large message of a stream waits: {early:?}");
    for half in halves {
        assert_eq!(half.finish().await, Code::Ok);
    }
    let work_down::Message::End(end) = stream.next().await else { panic!("no answer") };
    assert_eq!(end.state(), v1::TaskState::Done);
    client.enqueue(enqueue(LARGE_BYTES)).await.unwrap();
    assert_eq!(count(&store).await, added + 4);
    drop((client, stream));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_enqueues_are_each_complete_or_refused() {
    let store = store();
    let options = Options { bodies_max_bytes: BUDGET_BYTES, ..Options::default() };
    let served = Served::with(store.clone(), options).await;
    let client = tasks(&served.url).await;
    let calls = (0..32).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move { client.enqueue(enqueue(LARGE_BYTES)).await })
    });
    let mut added = 0;
    for call in calls.collect::<Vec<_>>() {
        match call.await.unwrap() {
            Ok(_) => added += 1,
            Err(refused) => assert_eq!(refused.code(), Code::Unavailable, "{refused:?}"),
        }
    }
    assert!(added > 0);
    // Refused calls must give back their room too.
    for half in [Half::start(&served.url).await, Half::start(&served.url).await] {
        assert_eq!(half.finish().await, Code::Ok);
    }
    assert_eq!(count(&store).await, added + 2);
    let ready = Filter { state: Some(State::Ready), ..Filter::default() };
    let whole = store.tasks(&ready, None, 1_000).await.unwrap().tasks;
    assert!(whole.iter().all(|task| task.payload.len() == LARGE_BYTES));
    drop(client);
    served.end().await;
}

#[tokio::test]
async fn a_message_that_never_arrives_gives_back_its_room() {
    let store = store();
    let options = Options {
        bodies_max_bytes: LARGE_BYTES + (2 << 10),
        body_read_max: Duration::from_millis(20),
        ..Options::default()
    };
    let served = Served::with(store.clone(), options).await;
    let half = Half::start(&served.url).await;
    let Half { say, rest, answer } = half;
    let response = answer.await.unwrap();
    let told = Status::from_header_map(response.headers()).unwrap();
    assert_eq!(told.code(), Code::DeadlineExceeded, "{told:?}");
    drop((say, rest, response));
    // The room is free again at once. On a busy machine a call may be too slow: it tries again.
    let mut client = tasks(&served.url).await;
    while let Err(refused) = client.enqueue(enqueue(LARGE_BYTES)).await {
        assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused:?}");
    }
    assert_eq!(count(&store).await, 1);
    drop(client);
    served.end().await;
}
