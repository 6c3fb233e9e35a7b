//! FENCED, S2: a caller cannot end, renew or report on a task that another worker holds, over any call.

use tokio::sync::mpsc;
use tonic::{Code, Request, Status, codegen::tokio_stream::wrappers::ReceiverStream};
use windlass_core::{NewTask, Payload, Scope, State, Store, TaskRecord};
use windlass_proto::{
    convert::error_of,
    v1::{self, settlement, store_client::StoreClient, work_down, work_up, workers_client::WorkersClient},
};

use crate::{access::Guarded, wire::Wire};

/// Two workers with a token each, and a task of the first one.
struct Pair {
    server: Guarded,
    owner: WorkersClient<Wire>,
    other: WorkersClient<Wire>,
    store: StoreClient<Wire>,
    tokens: [String; 2],
    lease: v1::Lease,
    other_id: String,
}

/// A request with a token.
pub fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

fn introduction() -> v1::RegisterRequest {
    v1::RegisterRequest { kinds: vec!["a".into()], max_capacity: 10, ..Default::default() }
}

impl Pair {
    async fn start() -> Self {
        let server = Guarded::start().await;
        let tokens = [server.token(&[Scope::Work]).await, server.token(&[Scope::Work]).await];
        let (wire, origin) = Wire::connect(&format!("http://{}", server.api.address)).await;
        let mut owner = WorkersClient::with_origin(wire.clone(), origin.clone());
        let mut other = WorkersClient::with_origin(wire.clone(), origin.clone());
        let task = NewTask::new("a", Payload::bytes(*b"x")).unwrap();
        server.api.store.enqueue(vec![task]).await.unwrap();
        let owner_id = owner.register(with(&tokens[0], introduction())).await.unwrap().into_inner().worker_id;
        let other_id = other.register(with(&tokens[1], introduction())).await.unwrap().into_inner().worker_id;
        let claim = v1::ClaimRequest {
            worker_id: owner_id,
            max_tasks: 1,
            kinds: vec!["a".into()],
            ..Default::default()
        };
        let lease =
            owner.claim(with(&tokens[0], claim)).await.unwrap().into_inner().tasks.remove(0).lease.unwrap();
        let store = StoreClient::with_origin(wire, origin);
        Self { server, owner, other, store, tokens, lease, other_id }
    }

    /// The lease, with the other worker's id in it.
    fn foreign(&self) -> v1::Lease {
        v1::Lease { worker_id: self.other_id.clone(), ..self.lease.clone() }
    }

    fn held(&self) -> v1::Held {
        v1::Held { task_id: self.lease.task_id.clone(), lease: self.lease.lease }
    }

    fn batch(&self, batch_no: u64, end: settlement::End) -> v1::SettleBatch {
        let item = v1::Settlement { held: Some(self.held()), end: Some(end), ..Default::default() };
        v1::SettleBatch { worker_id: self.other_id.clone(), settler_no: 0, batch_no, items: vec![item] }
    }

    async fn task(&self) -> TaskRecord {
        self.server.api.store.task(self.lease.task_id.parse().unwrap()).await.unwrap().unwrap()
    }

    /// The owner ends its task. The refused calls must have changed nothing.
    async fn end(mut self) {
        let done = v1::CompleteRequest { lease: Some(self.lease.clone()), output: None };
        let done = self.owner.complete(with(&self.tokens[0], done)).await.unwrap().into_inner();
        assert_eq!(done.state(), v1::TaskState::Done);
        assert_eq!(self.server.api.store.audit().await.unwrap(), []);
    }
}

fn every_end() -> [settlement::End; 6] {
    [
        settlement::End::Done(v1::Done::default()),
        settlement::End::Retry(v1::RetryAt { due_at_ms: 1, error: "no".into() }),
        settlement::End::Snooze(v1::SnoozeUntil { due_at_ms: 1 }),
        settlement::End::Release(v1::HandBack {}),
        settlement::End::Dead(v1::Dead { error: "no".into() }),
        settlement::End::Cancelled(v1::Cancelled { reason: "no".into() }),
    ]
}

#[tokio::test]
async fn settling_anothers_task_by_a_call_is_refused() {
    let mut pair = Pair::start().await;
    let before = pair.task().await;
    let (token, lease) = (pair.tokens[1].clone(), Some(pair.foreign()));
    let complete = v1::CompleteRequest { lease: lease.clone(), output: None };
    let fail = v1::FailRequest { lease: lease.clone(), error: "no".into(), ..Default::default() };
    let fatal = v1::FailRequest { fatal: true, ..fail.clone() };
    let release = v1::ReleaseRequest { lease: lease.clone(), delay_ms: None };
    let snooze = v1::ReleaseRequest { lease, delay_ms: Some(1) };
    let held = pair.held();
    let progress = v1::ProgressRequest {
        worker_id: pair.other_id.clone(),
        task_id: held.task_id.clone(),
        lease: held.lease,
        progress: "mine".into(),
    };
    let beat = v1::TaskHeartbeatRequest {
        worker_id: pair.other_id.clone(),
        task_id: held.task_id,
        lease: held.lease,
    };
    let other = &mut pair.other;
    let refused: [(&str, Status); 7] = [
        ("complete", other.complete(with(&token, complete)).await.unwrap_err()),
        ("fail", other.fail(with(&token, fail)).await.unwrap_err()),
        ("fail for good", other.fail(with(&token, fatal)).await.unwrap_err()),
        ("release", other.release(with(&token, release)).await.unwrap_err()),
        ("snooze", other.release(with(&token, snooze)).await.unwrap_err()),
        ("progress", other.progress(with(&token, progress)).await.unwrap_err()),
        ("heartbeat", other.task_heartbeat(with(&token, beat)).await.unwrap_err()),
    ];
    for (what, status) in refused {
        assert_eq!(status.code(), Code::FailedPrecondition, "{what}: {status:?}");
        assert!(status.message().ends_with("is no longer leased to this attempt"), "{what}: {status:?}");
    }
    for (n, end) in every_end().into_iter().enumerate() {
        let batch = with(&token, pair.batch(n as u64 + 1, end));
        let settled = pair.store.settle(batch).await.unwrap().into_inner();
        assert_eq!(settled.fenced, [pair.lease.task_id.clone()]);
    }
    let handed_back = v1::ReconcileRequest { worker_id: pair.other_id.clone(), ..Default::default() };
    assert_eq!(pair.other.reconcile(with(&token, handed_back)).await.unwrap().into_inner().tasks, 0);
    assert_eq!(pair.task().await, before);
    assert_eq!(before.state, State::Running);
    pair.end().await;
}

#[tokio::test]
async fn settling_anothers_task_on_a_stream_is_refused() {
    let mut pair = Pair::start().await;
    let before = pair.task().await;
    let (up, said) = mpsc::channel(8);
    let hello =
        v1::Hello { worker_id: pair.other_id.clone(), register: Some(introduction()), ..Default::default() };
    let say = async |message| up.send(v1::WorkUp { message: Some(message) }).await.unwrap();
    say(work_up::Message::Hello(hello)).await;
    let work = with(&pair.tokens[1], ReceiverStream::new(said));
    let mut told = pair.other.work(work).await.unwrap().into_inner();
    let mut next = async || told.message().await.unwrap().unwrap().message.unwrap();
    assert!(matches!(next().await, work_down::Message::Welcome(_)));
    // A stream acts for its own worker, also if its messages name another one.
    for lease in [pair.foreign(), pair.lease.clone()].map(Some) {
        let fail = v1::FailRequest { lease: lease.clone(), error: "no".into(), ..Default::default() };
        for end in [
            work_up::Message::Complete(v1::CompleteRequest { lease: lease.clone(), output: None }),
            work_up::Message::Fail(fail.clone()),
            work_up::Message::Fail(v1::FailRequest { fatal: true, ..fail.clone() }),
            work_up::Message::Release(v1::ReleaseRequest { lease: lease.clone(), delay_ms: None }),
        ] {
            say(end).await;
            let work_down::Message::End(answer) = next().await else { panic!("no answer") };
            let error = error_of(&answer.error.unwrap());
            assert_eq!(error, windlass_core::Error::LeaseLost(before.id));
        }
    }
    for (n, end) in every_end().into_iter().enumerate() {
        let batch = pair.batch(n as u64 + 1, end);
        let batch = v1::SettleBatch { worker_id: pair.lease.worker_id.clone(), ..batch };
        say(work_up::Message::Settle(batch)).await;
        let work_down::Message::Settled(answer) = next().await else { panic!("no answer") };
        assert_eq!(answer.settled.unwrap().fenced, [pair.lease.task_id.clone()]);
    }
    let held = pair.held();
    let progress = v1::ProgressRequest {
        worker_id: pair.lease.worker_id.clone(),
        task_id: held.task_id,
        lease: held.lease,
        progress: "mine".into(),
    };
    say(work_up::Message::Progress(progress)).await;
    // Progress has no answer. A stream ends after the server has handled all its messages.
    drop(up);
    assert!(told.message().await.unwrap().is_none());
    assert_eq!(pair.task().await, before);
    pair.end().await;
}
