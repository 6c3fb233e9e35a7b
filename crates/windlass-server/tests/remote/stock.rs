//! What a client in any language does with standard tools: reflection, health, single calls, a stream.

use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::{Code, Streaming, codegen::tokio_stream::wrappers::ReceiverStream};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use windlass_conformance::{MemoryStore, harness::START};
use windlass_core::{LeaseRef, NewTask, Payload, Source as _, State, Store, time::ManualClock};
use windlass_proto::v1::{
    self, tasks_client::TasksClient, work_down, work_up, workers_client::WorkersClient,
};

use crate::{harness::Served, wire::Wire};

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(ManualClock::new(START)), windlass_core::Rules::default()))
}

pub fn introduction() -> v1::RegisterRequest {
    v1::RegisterRequest { kinds: vec!["a".into()], max_capacity: 10, ..Default::default() }
}

pub async fn workers(url: &str) -> WorkersClient<Wire> {
    let (wire, origin) = Wire::connect(url).await;
    WorkersClient::with_origin(wire, origin)
}

async fn add(store: &MemoryStore, n: usize) {
    let task = NewTask::new("a", Payload::bytes(*b"x")).unwrap();
    store.enqueue(vec![task; n]).await.unwrap();
}

#[tokio::test]
async fn reflection_in_both_versions_and_health_work() {
    let served = Served::start(store()).await;
    let (wire, origin) = Wire::connect(&served.url).await;
    let health = HealthClient::with_origin(wire.clone(), origin.clone())
        .check(HealthCheckRequest { service: "windlass.v1.Tasks".into() })
        .await
        .unwrap();
    assert_eq!(health.into_inner().status, 1);
    macro_rules! services {
        ($version:ident) => {{
            use tonic_reflection::pb::$version::{
                ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
                server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
            };
            let (ask, asked) = mpsc::channel(1);
            let list = MessageRequest::ListServices(String::new());
            ask.send(ServerReflectionRequest { host: String::new(), message_request: Some(list) })
                .await
                .unwrap();
            let mut client = ServerReflectionClient::with_origin(wire.clone(), origin.clone());
            let mut answers =
                client.server_reflection_info(ReceiverStream::new(asked)).await.unwrap().into_inner();
            let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
            let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
            list.service.into_iter().map(|service| service.name).collect::<Vec<_>>()
        }};
    }
    for names in [services!(v1), services!(v1alpha)] {
        for name in
            ["windlass.v1.Tasks", "windlass.v1.Workers", "windlass.v1.Control", "grpc.health.v1.Health"]
        {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
    }
    drop(wire);
    served.end().await;
}

#[tokio::test]
async fn repeated_ends_of_one_lease_end_the_task_once() {
    let store = store();
    let served = Served::start(store.clone()).await;
    let mut client = workers(&served.url).await;
    let worker_id = client.register(introduction()).await.unwrap().into_inner().worker_id;
    add(&store, 3).await;
    let claim = v1::ClaimRequest {
        worker_id: worker_id.clone(),
        max_tasks: 3,
        kinds: vec!["a".into()],
        ..Default::default()
    };
    let tasks = client.claim(claim).await.unwrap().into_inner().tasks;
    let leases: Vec<_> = tasks.into_iter().map(|task| task.lease.unwrap()).collect();
    let beat = v1::TaskHeartbeatRequest {
        worker_id: worker_id.clone(),
        task_id: leases[0].task_id.clone(),
        lease: leases[0].lease,
    };
    client.task_heartbeat(beat.clone()).await.unwrap();
    let output = Some(v1::Payload { encoding: 0, data: b"{\"ok\":1}".to_vec() });
    for _ in 0..2 {
        let done = v1::CompleteRequest { lease: Some(leases[0].clone()), output: output.clone() };
        assert_eq!(client.complete(done).await.unwrap().into_inner().state(), v1::TaskState::Done);
    }
    let lost = client.task_heartbeat(beat).await.unwrap_err();
    assert_eq!((lost.code(), lost.message().contains("no longer leased")), (Code::FailedPrecondition, true));
    let failed = v1::FailRequest {
        lease: Some(leases[1].clone()),
        error: "no".into(),
        fatal: true,
        ..Default::default()
    };
    assert_eq!(client.fail(failed).await.unwrap().into_inner().state(), v1::TaskState::Dead);
    let other = client.register(introduction()).await.unwrap().into_inner().worker_id;
    let foreign = v1::Lease { worker_id: other, ..leases[2].clone() };
    let refused =
        client.complete(v1::CompleteRequest { lease: Some(foreign), output: None }).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "another's task: {refused:?}");
    let released = v1::ReleaseRequest { lease: Some(leases[2].clone()), delay_ms: None };
    assert_eq!(client.release(released).await.unwrap().into_inner().state(), v1::TaskState::Ready);
    assert_eq!(client.retire(v1::RetireRequest { worker_id }).await.unwrap().into_inner().tasks, 0);
    drop(client);
    served.end().await;
}

#[tokio::test]
async fn grpc_errors_have_the_sentences_of_http() {
    let served = Served::start(store()).await;
    let (wire, origin) = Wire::connect(&served.url).await;
    let mut tasks = TasksClient::with_origin(wire.clone(), origin);
    let missing = v1::GetTaskRequest { task_id: "06VHASA000000".into() };
    let status = tasks.get_task(missing).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "task 06VHASA000000 not found"));
    let bad = v1::Payload { encoding: 0, data: b"{".to_vec() };
    let task = v1::NewTask { kind: "a".into(), payload: Some(bad), ..Default::default() };
    let status = tasks.enqueue(v1::EnqueueRequest { task: Some(task) }).await.unwrap_err();
    assert!(
        status.code() == Code::InvalidArgument && status.message().contains("not valid JSON"),
        "{status:?}"
    );
    let mut foreign = TasksClient::with_origin(wire, "http://evil.example".parse().unwrap());
    let status = foreign.list_tasks(v1::ListTasksRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    drop((tasks, foreign));
    served.end().await;
}

/// A stream without a worker: the test sends each message.
pub struct Stream {
    say: mpsc::Sender<v1::WorkUp>,
    told: Streaming<v1::WorkDown>,
}

impl Stream {
    async fn open(url: &str, hello: v1::Hello) -> Self {
        Self::over(&mut workers(url).await, hello).await
    }

    /// One of several streams on a connection.
    pub async fn over(client: &mut WorkersClient<Wire>, hello: v1::Hello) -> Self {
        let (say, said) = mpsc::channel(8);
        let up = v1::WorkUp { message: Some(work_up::Message::Hello(hello)) };
        say.send(up).await.unwrap();
        let told = client.work(ReceiverStream::new(said)).await.unwrap().into_inner();
        Self { say, told }
    }

    pub async fn say(&self, message: work_up::Message) {
        self.say.send(v1::WorkUp { message: Some(message) }).await.unwrap();
    }

    pub async fn next(&mut self) -> work_down::Message {
        self.told.message().await.unwrap().unwrap().message.unwrap()
    }

    pub async fn tasks(&mut self) -> Vec<v1::ClaimedTask> {
        match self.next().await {
            work_down::Message::Tasks(tasks) => tasks.tasks,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_stream_holds_to_its_credit_and_takes_ends_and_heartbeats() {
    let store = store();
    let served = Served::start(store.clone()).await;
    add(&store, 5).await;
    let hello = v1::Hello { register: Some(introduction()), ..Default::default() };
    let mut stream = Stream::open(&served.url, hello).await;
    let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 2 })).await;
    let tasks = stream.tasks().await;
    assert_eq!(tasks.len(), 2);
    let done = v1::CompleteRequest { lease: tasks[0].lease.clone(), output: None };
    stream.say(work_up::Message::Complete(done)).await;
    // The next message is the answer: without credit no third task comes before it.
    let work_down::Message::End(end) = stream.next().await else { panic!("no answer") };
    assert_eq!(end.state(), v1::TaskState::Done);
    let beat = v1::HeartbeatRequest {
        available_capacity: 1,
        max_capacity: 10,
        memory_usage: 0.5,
        ..Default::default()
    };
    stream.say(work_up::Message::Heartbeat(beat)).await;
    let work_down::Message::Heartbeat(answer) = stream.next().await else { panic!("no answer") };
    assert!(answer.error.is_none());
    let seen = store.workers().await.unwrap();
    assert_eq!(
        (seen[0].id.to_string(), seen[0].available, seen[0].memory_usage),
        (welcome.worker_id, 1, 0.5)
    );
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 5 })).await;
    assert_eq!(stream.tasks().await.len(), 3, "what came before counts");
    drop(stream);
    served.end().await;
}

#[tokio::test]
async fn tasks_that_a_new_stream_does_not_name_go_back() {
    let store = store();
    let served = Served::start(store.clone()).await;
    add(&store, 3).await;
    let hello = v1::Hello { register: Some(introduction()), ..Default::default() };
    let mut stream = Stream::open(&served.url, hello.clone()).await;
    let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 3 })).await;
    let tasks = stream.tasks().await;
    drop(stream);
    let kept = tasks[1].lease.clone().unwrap();
    let hello = v1::Hello {
        worker_id: welcome.worker_id,
        in_flight: vec![v1::Held { task_id: kept.task_id.clone(), lease: kept.lease }],
        up_to_claim_no: tasks[0].claim_no,
        ..hello
    };
    let mut stream = Stream::open(&served.url, hello).await;
    let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
    assert_eq!(welcome.handed_back, 2);
    for task in &tasks {
        let id = task.lease.as_ref().unwrap().task_id.parse().unwrap();
        let expected = if Some(&kept) == task.lease.as_ref() { State::Running } else { State::Ready };
        assert_eq!(store.task(id).await.unwrap().unwrap().state, expected);
    }
    drop(stream);
    served.end().await;
}

#[tokio::test]
async fn a_new_stream_tells_the_worker_which_tasks_it_has_lost() {
    let store = store();
    let served = Served::start(store.clone()).await;
    add(&store, 2).await;
    let hello = v1::Hello { register: Some(introduction()), ..Default::default() };
    let mut stream = Stream::open(&served.url, hello.clone()).await;
    let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
    assert_eq!(welcome.lost, []);
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 2 })).await;
    let mut held = Vec::new();
    while held.len() < 2 {
        held.extend(stream.tasks().await.into_iter().filter_map(|task| task.lease));
    }
    stream.say(work_up::Message::Credit(v1::Credit { tasks: 0 })).await;
    stream.say(work_up::Message::Heartbeat(v1::HeartbeatRequest::default())).await;
    let work_down::Message::Heartbeat(answer) = stream.next().await else { panic!("no answer") };
    assert_eq!(answer.renewed.unwrap().lease_epoch, Some(0));
    drop(stream);
    // The store has lost one of them, as after a crash.
    let named = |lease: &v1::Lease| v1::Held { task_id: lease.task_id.clone(), lease: lease.lease };
    let kept = LeaseRef { id: held[1].task_id.parse().unwrap(), lease: held[1].lease };
    let worker = windlass_proto::convert::worker_id(&welcome.worker_id).unwrap();
    assert_eq!(store.reconcile(worker, i64::MAX as u64, &[kept]).await.unwrap().handed_back, 1);
    let in_flight = held.iter().map(named).collect();
    let hello = v1::Hello { worker_id: welcome.worker_id, in_flight, ..hello };
    let mut stream = Stream::open(&served.url, hello).await;
    let work_down::Message::Welcome(welcome) = stream.next().await else { panic!("no welcome") };
    assert_eq!((welcome.handed_back, welcome.lost), (0, vec![named(&held[0])]));
    drop(stream);
    served.end().await;
}

#[tokio::test]
async fn an_older_stream_at_another_server_gets_no_more_tasks() {
    let store = store();
    let (first, second) = (Served::start(store.clone()).await, Served::start(store.clone()).await);
    let hello = v1::Hello { register: Some(introduction()), ..Default::default() };
    let mut old = Stream::open(&first.url, hello.clone()).await;
    let work_down::Message::Welcome(welcome) = old.next().await else { panic!("no welcome") };
    old.say(work_up::Message::Credit(v1::Credit { tasks: 4 })).await;
    old.say(work_up::Message::Heartbeat(v1::HeartbeatRequest::default())).await;
    let work_down::Message::Heartbeat(_) = old.next().await else { panic!("no answer") };

    // The worker takes the first server for dead, and the first server does not know that.
    let hello = v1::Hello { worker_id: welcome.worker_id, ..hello };
    let mut new = Stream::open(&second.url, hello).await;
    let work_down::Message::Welcome(welcome) = new.next().await else { panic!("no welcome") };
    add(&store, 1).await;
    let refused = old.told.message().await.unwrap_err();
    assert!(refused.message().contains("expired"), "{refused}");
    new.say(work_up::Message::Credit(v1::Credit { tasks: 1 })).await;
    let tasks = new.tasks().await;
    assert!(tasks[0].claim_no > welcome.claim_no, "{} {}", tasks[0].claim_no, welcome.claim_no);
    drop((old, new));
    first.end().await;
    second.end().await;
}
