//! A server with data of every kind, and callers with every kind of token.

use std::{collections::BTreeMap, time::Duration};

use windlass::schedule::Spec;
use windlass_core::{
    Claimed, Clock, Demand, JobChange, Name, NewSession, NewTask, NewWorker, Outcome, Payload, ScheduleRow,
    SettleBatch, SettleItem, Start, Store, TaskId, Timestamp, TokenHash, WorkerId, settle,
};
use windlass_server::api::TokenRequest;

use crate::access::Guarded;

/// The caller of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bearer {
    /// Without a token.
    NoToken,
    Read,
    Enqueue,
    /// The same, bound to the queue `mail`.
    EnqueueMail,
    Work,
    /// The same, bound to the queue `mail`.
    WorkMail,
    Admin,
}

impl Bearer {
    pub const ALL: [Self; 7] = [
        Self::NoToken,
        Self::Read,
        Self::Enqueue,
        Self::EnqueueMail,
        Self::Work,
        Self::WorkMail,
        Self::Admin,
    ];

    pub fn works(self) -> bool {
        matches!(self, Self::Work | Self::WorkMail)
    }

    pub fn enqueues(self) -> bool {
        matches!(self, Self::Enqueue | Self::EnqueueMail)
    }

    pub fn may_have(self, queue: &Name) -> bool {
        !matches!(self, Self::EnqueueMail | Self::WorkMail) || queue.as_str() == "mail"
    }

    fn token(self) -> TokenRequest {
        let (scope, queues) = match self {
            Self::NoToken | Self::Read => ("read", vec![]),
            Self::Enqueue => ("enqueue", vec![]),
            Self::EnqueueMail => ("enqueue", vec![name("mail")]),
            Self::Work => ("work", vec![]),
            Self::WorkMail => ("work", vec![name("mail")]),
            Self::Admin => ("admin", vec![]),
        };
        TokenRequest { scopes: vec![scope.to_owned()], queues, ..TokenRequest::default() }
    }
}

pub fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

pub fn task(kind: &str, queue: &str) -> NewTask {
    NewTask { queue: name(queue), ..NewTask::new(kind, Payload::bytes(*b"x")).unwrap() }
}

/// A worker and its running task.
#[derive(Clone)]
pub struct Hand {
    pub worker: WorkerId,
    pub claimed: Claimed,
}

/// A bulk run of another server.
const RUN: &str = r#"{"action":"retry","filter":{"kind":"none"},"over_ms":60000,"by":"anybody","state":"running",
    "matched":2,"more":false,"changed":0,"refused":0,"worked_ms":0,"state_no":0,"owner":"another"}"#;

/// A server with data of every kind.
pub struct Scene {
    pub server: Guarded,
    tokens: BTreeMap<Bearer, String>,
    /// Workers that the bearers registered.
    pub own: BTreeMap<Bearer, Hand>,
    /// A worker of another caller.
    pub victim: Hand,
    pub dead: TaskId,
    pub done: TaskId,
    pub ready: TaskId,
    /// A schedule with a due tick, the payload that this tick enqueues, and the tick after it.
    pub due: ScheduleRow,
    pub due_payload: Payload,
    pub due_next: Timestamp,
    /// A session of another caller.
    pub session: Name,
    /// A schedule with its next tick far in the future.
    pub tonight: ScheduleRow,
}

impl Scene {
    pub async fn set() -> Self {
        let server = Guarded::start().await;
        let store = server.api.store.clone();
        let (mut tokens, mut own) = (BTreeMap::new(), BTreeMap::new());
        for bearer in Bearer::ALL {
            let created = server.operations.create_token(bearer.token()).await.unwrap();
            if bearer.works() {
                let owner = format!("token {}", created.view.id);
                own.insert(bearer, hand(&*store, "mail", Some(&owner)).await);
            }
            tokens.insert(bearer, created.token);
        }
        let other = server.operations.create_token(Bearer::Work.token()).await.unwrap();
        let victim = hand(&*store, "default", Some(&format!("token {}", other.view.id))).await;
        let session = name("0123456789abcdef");
        let (token, hash) = (other.view.id.clone(), TokenHash([7; 32]));
        let new = NewSession { id: session.clone(), token, hash, ttl: Duration::from_hours(1) };
        store.tokens().sessions().add(&new).await.unwrap().unwrap();
        store.operators().start_run(RUN).await.unwrap();
        let dead = end(&*store, &victim, Outcome::dead("no")).await;
        let done = end(&*store, &victim, Outcome::Done(None)).await;
        let ready = add(&*store, task("a", "default")).await;
        add(&*store, task("a", "mail")).await;
        let later = Start::In(Duration::from_hours(24));
        add(&*store, NewTask { start: later, ..task("a", "default") }).await;
        gates(&*store, &victim).await;
        store.set_queue_paused(&name("frozen"), true).await.unwrap();
        let now = server.api.clock.wall();
        let due_payload = Payload::json(&"of the schedule").unwrap();
        let spec = |cron: &str| {
            let task = NewTask::new("tick", due_payload.clone()).unwrap();
            Spec::raw(cron, task).unwrap()
        };
        let due = row("due", &spec("* * * * *"), now.before(Duration::from_secs(10)));
        let tonight = row("tonight", &spec("0 23 * * *"), now.after(Duration::from_hours(13)));
        for row in [&due, &tonight] {
            store.schedules().put(row).await.unwrap();
        }
        let due_next = spec("* * * * *").next_after(now).unwrap();
        Self { server, tokens, own, victim, dead, done, ready, due, due_payload, due_next, session, tonight }
    }

    pub fn token(&self, bearer: Bearer) -> Option<&str> {
        self.tokens.get(&bearer).filter(|_| bearer != Bearer::NoToken).map(String::as_str)
    }

    /// The worker of a bearer; without one, the victim.
    pub fn own_or_victim(&self, bearer: Bearer) -> &Hand {
        self.own.get(&bearer).unwrap_or(&self.victim)
    }
}

fn row(schedule: &str, spec: &Spec, next_at: Timestamp) -> ScheduleRow {
    ScheduleRow {
        name: name(schedule),
        spec: spec.to_stored().unwrap(),
        paused: false,
        next_at: Some(next_at),
        last_at: None,
        last_task: None,
    }
}

async fn add(store: &dyn Store, task: NewTask) -> TaskId {
    store.enqueue(vec![task]).await.unwrap()[0].id
}

/// Registers a worker, with a running task of a queue.
async fn hand(store: &dyn Store, queue: &str, owner: Option<&str>) -> Hand {
    let worker = NewWorker {
        host: "h".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        kinds: vec![name("a"), name("tick")],
        queues: Vec::new(),
        slots: 10,
        lease_ttl: Duration::from_mins(1),
    };
    let worker = store.register_remote(worker, owner).await.unwrap();
    add(store, task("a", queue)).await;
    Hand { worker, claimed: claim(store, worker).await }
}

async fn claim(store: &dyn Store, worker: WorkerId) -> Claimed {
    let lanes = store.lanes(&[name("a")], &[]).await.unwrap().iter().map(|lane| lane.id).collect();
    let claim_no =
        store.tasks(&windlass_core::store::Filter::default(), None, 1000).await.unwrap().tasks.len();
    let demand = Demand::new(worker, claim_no as u64 + 1, lanes, 1);
    store.claim(&[demand]).await.unwrap().tasks.remove(0)
}

/// Adds a task that ends with this outcome.
async fn end(store: &dyn Store, hand: &Hand, outcome: Outcome) -> TaskId {
    let id = add(store, task("a", "default")).await;
    let claimed = claim(store, hand.worker).await;
    let settlement = settle(&claimed, outcome, claimed.claimed_at, store.rules());
    let items = vec![SettleItem::new(&claimed, settlement)];
    let batch = SettleBatch { worker: hand.worker, settler_no: claimed.claim_no as u32, batch_no: 1, items };
    store.settle(batch.into()).await.unwrap();
    id
}

/// Creates a job at its limit, and a blocked workflow.
async fn gates(store: &dyn Store, hand: &Hand) {
    let limit = JobChange { concurrency: Some(Some(1)), ..JobChange::default() };
    store.gates().set_job(&name("j"), &limit).await.unwrap();
    for _ in 0..2 {
        add(store, NewTask { job: Some(name("j")), ..task("idle", "default") }).await;
    }
    let step = |kind: &str| NewTask { workflow: Some(name("w")), ..task(kind, "default") };
    let head = add(store, NewTask { priority: 9, ..step("a") }).await;
    add(store, step("a")).await;
    let claimed = claim(store, hand.worker).await;
    assert_eq!(claimed.id, head);
    let settlement = settle(&claimed, Outcome::dead("no"), claimed.claimed_at, store.rules());
    let items = vec![SettleItem::new(&claimed, settlement)];
    let batch = SettleBatch { worker: hand.worker, settler_no: 99, batch_no: 1, items };
    store.settle(batch.into()).await.unwrap();
}
