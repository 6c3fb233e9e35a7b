//! For every gRPC method, messages that ask for more than the caller may have.

use prost::Message;
use windlass_core::{Timestamp, WorkerId};
use windlass_proto::v1::{self, settlement::End, work_up};

use super::{
    Bearer, Scene,
    scene::{Hand, name, task},
};

/// A year that no schedule should be moved to.
const FAR_MS: i64 = 4_000_000_000_000;

/// What a caller knows when it builds its messages.
pub struct Arsenal<'a> {
    scene: &'a Scene,
    own: &'a Hand,
}

impl<'a> Arsenal<'a> {
    pub fn of(scene: &'a Scene, bearer: Bearer) -> Self {
        Self { scene, own: scene.own_or_victim(bearer) }
    }

    /// The messages for a method. Each is the body of one call; the body of a stream contains several.
    pub fn messages(&self, method: &str) -> Vec<Vec<u8>> {
        let Some((service, method)) = method.rsplit_once('/') else { panic!("{method} is no method") };
        match service {
            "windlass.v1.Tasks" => self.tasks(method),
            "windlass.v1.Workers" => self.workers(method),
            "windlass.v1.Control" => control(method),
            "windlass.v1.Store" => self.store(method),
            _ => vec![Vec::new()],
        }
        .into_iter()
        .collect()
    }

    fn victim(&self) -> String {
        self.scene.victim.worker.to_string()
    }

    fn held(hand: &Hand) -> v1::Held {
        v1::Held { task_id: hand.claimed.id.to_string(), lease: hand.claimed.lease }
    }

    /// The lease of a task as a worker would state it, with a budget and a policy that the store did not
    /// grant.
    fn lease(hand: &Hand, worker: WorkerId) -> v1::Lease {
        v1::Lease {
            task_id: hand.claimed.id.to_string(),
            lease: hand.claimed.lease,
            worker_id: worker.to_string(),
            attempt: 1,
            max_attempts: u32::MAX,
            job: "j".to_owned(),
            workflow: "w".to_owned(),
            ..v1::Lease::default()
        }
    }

    /// Leases of the victim's task: one in the victim's name, and one in the name of the caller's own worker.
    fn leases(&self) -> [v1::Lease; 2] {
        let victim = &self.scene.victim;
        [Self::lease(victim, victim.worker), Self::lease(victim, self.own.worker)]
    }

    fn tasks(&self, method: &str) -> Vec<Vec<u8>> {
        let ids = vec![
            self.scene.victim.claimed.id.to_string(),
            self.scene.ready.to_string(),
            self.scene.dead.to_string(),
        ];
        match method {
            "Enqueue" => {
                enqueue().map(|task| v1::EnqueueRequest { task: Some(task) }.encode_to_vec()).to_vec()
            }
            "EnqueueBatch" => {
                vec![v1::EnqueueBatchRequest { tasks: enqueue().to_vec() }.encode_to_vec()]
            }
            "GetTask" => vec![v1::GetTaskRequest { task_id: ids[0].clone() }.encode_to_vec()],
            "ListTasks" => vec![v1::ListTasksRequest::default().encode_to_vec()],
            "WaitTasks" => vec![v1::WaitTasksRequest { task_ids: ids, timeout_ms: 0 }.encode_to_vec()],
            "CancelTasks" => {
                vec![v1::CancelTasksRequest { task_ids: ids, reason: "mine".to_owned() }.encode_to_vec()]
            }
            "RetryTasks" => {
                let tasks = ids.into_iter().map(|task_id| v1::RetryTask { task_id, delay_ms: 0 });
                vec![v1::RetryTasksRequest { tasks: tasks.collect() }.encode_to_vec()]
            }
            "RepeatTask" => {
                let ids = ids.into_iter().chain([self.scene.done.to_string()]);
                ids.map(|task_id| v1::RepeatTaskRequest { task_id, delay_ms: 0 }.encode_to_vec()).collect()
            }
            "RemoveTasks" => vec![v1::RemoveTasksRequest { task_ids: ids }.encode_to_vec()],
            "FindKey" => {
                let (queue, key) = ("default".to_owned(), "k".to_owned());
                vec![v1::FindKeyRequest { queue, key }.encode_to_vec()]
            }
            _ => panic!("no message for {method}"),
        }
    }

    fn register(kinds: &[&str]) -> v1::RegisterRequest {
        let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
        v1::RegisterRequest { kinds, max_capacity: 100_000, lease_ttl_ms: 3_600_000, ..Default::default() }
    }

    fn heartbeat(&self) -> v1::HeartbeatRequest {
        v1::HeartbeatRequest { worker_id: self.victim(), draining: true, ..Default::default() }
    }

    fn progress(&self, worker_id: String) -> v1::ProgressRequest {
        let v1::Held { task_id, lease } = Self::held(&self.scene.victim);
        v1::ProgressRequest { worker_id, task_id, lease, progress: "x".repeat(1 << 20) }
    }

    fn workers(&self, method: &str) -> Vec<Vec<u8>> {
        let (victim, own) = (self.victim(), self.own.worker.to_string());
        let both = [victim.clone(), own.clone()];
        match method {
            "Register" => vec![Self::register(&["a", "tick"]).encode_to_vec()],
            "Heartbeat" => vec![self.heartbeat().encode_to_vec()],
            "TaskHeartbeat" => both
                .map(|worker_id| {
                    let v1::Held { task_id, lease } = Self::held(&self.scene.victim);
                    v1::TaskHeartbeatRequest { worker_id, task_id, lease }.encode_to_vec()
                })
                .to_vec(),
            "Retire" => vec![v1::RetireRequest { worker_id: victim }.encode_to_vec()],
            "Claim" => both
                .map(|worker_id| {
                    let kinds = vec!["a".to_owned(), "tick".to_owned()];
                    v1::ClaimRequest { worker_id, max_tasks: 1_000, kinds, ..Default::default() }
                        .encode_to_vec()
                })
                .to_vec(),
            "Complete" => self
                .leases()
                .map(|lease| end(lease, |lease| v1::CompleteRequest { lease, output: None }))
                .to_vec(),
            "Fail" => {
                let mut fails = Vec::new();
                for lease in self.leases().into_iter().chain([Self::lease(self.own, self.own.worker)]) {
                    for fatal in [false, true] {
                        let (lease, error) = (Some(lease.clone()), "no".to_owned());
                        fails.push(
                            v1::FailRequest { lease, error, fatal, ..Default::default() }.encode_to_vec(),
                        );
                    }
                }
                fails
            }
            "Release" => self
                .leases()
                .map(|lease| end(lease, |lease| v1::ReleaseRequest { lease, delay_ms: Some(1) }))
                .to_vec(),
            "Progress" => both.map(|worker| self.progress(worker).encode_to_vec()).to_vec(),
            "Reconcile" => {
                vec![v1::ReconcileRequest { worker_id: victim, ..Default::default() }.encode_to_vec()]
            }
            "Work" => self.streams(),
            "ListWorkers" => vec![Vec::new()],
            "SetWorker" => vec![v1::SetWorkerRequest { worker_id: victim, max_capacity: 1 }.encode_to_vec()],
            _ => panic!("no message for {method}"),
        }
    }

    /// Streams in the victim's name, and streams of the caller's worker with the victim's lease.
    fn streams(&self) -> Vec<Vec<u8>> {
        let [as_victim, as_own] = self.leases();
        let hello = |worker_id: String| {
            let register = Some(Self::register(&["a", "tick"]));
            work_up::Message::Hello(v1::Hello { worker_id, register, ..Default::default() })
        };
        [self.victim(), self.own.worker.to_string(), String::new()]
            .into_iter()
            .map(|worker| {
                let mut said = vec![hello(worker.clone()), work_up::Message::Heartbeat(self.heartbeat())];
                for lease in [&as_victim, &as_own] {
                    let lease = Some(lease.clone());
                    said.push(work_up::Message::Complete(v1::CompleteRequest { lease, output: None }));
                }
                said.push(work_up::Message::Progress(self.progress(worker)));
                said.push(work_up::Message::Settle(self.batch(self.scene.victim.worker, &done())));
                said.push(work_up::Message::Credit(v1::Credit { tasks: u64::MAX }));
                let said =
                    said.into_iter().map(|message| v1::WorkUp { message: Some(message) }.encode_to_vec());
                joined(said)
            })
            .collect()
    }

    fn batch(&self, worker: WorkerId, end: &End) -> v1::SettleBatch {
        let held = [&self.scene.victim, self.own].map(Self::held);
        let mut items: Vec<_> = held
            .into_iter()
            .map(|held| v1::Settlement { held: Some(held), end: Some(end.clone()), ..Default::default() })
            .collect();
        items.dedup_by_key(|item| item.held.clone().map(|held| held.task_id));
        v1::SettleBatch { worker_id: worker.to_string(), settler_no: 7, batch_no: 1, items }
    }

    fn store(&self, method: &str) -> Vec<Vec<u8>> {
        let (victim, own) = (self.scene.victim.worker, self.own.worker);
        match method {
            "GetRules" | "GetInfo" | "WatchHints" | "Audit" | "GetReadyLines" | "ViewGates"
            | "ListSchedules" => {
                vec![Vec::new()]
            }
            "ListLanes" => {
                vec![v1::ListLanesRequest { kinds: vec!["a".to_owned()], queues: vec![] }.encode_to_vec()]
            }
            "ClaimFor" => [victim, own]
                .map(|worker| {
                    let demand = v1::Demand {
                        worker_id: worker.to_string(),
                        claim_no: 1 << 40,
                        lanes: (0..100).collect(),
                        max_tasks: u32::MAX,
                        prefers: vec!["w".to_owned()],
                    };
                    v1::ClaimForRequest { demands: vec![demand] }.encode_to_vec()
                })
                .to_vec(),
            "Unclaim" => {
                let claim_no = self.scene.victim.claimed.claim_no;
                [claim_no, 1 << 50]
                    .map(|claim_no| {
                        v1::UnclaimRequest { worker_id: victim.to_string(), claim_no }.encode_to_vec()
                    })
                    .to_vec()
            }
            "Settle" => {
                let error = "no".to_owned();
                let ends = [
                    done(),
                    End::Retry(v1::RetryAt { due_at_ms: FAR_MS, error }),
                    End::Release(v1::HandBack {}),
                ];
                let of = |worker| ends.clone().map(|end| self.batch(worker, &end).encode_to_vec());
                [victim, own].map(of).concat()
            }
            "DoDuty" => (1..=4)
                .map(|duty| {
                    let nothing = v1::Retention { history_age_ms: 0, history_max_bytes: 0, dead_age_ms: 0 };
                    v1::DutyRequest { duty, limit: u32::MAX, retention: Some(nothing) }.encode_to_vec()
                })
                .collect(),
            "PutSchedule" => {
                let row = windlass_core::ScheduleRow { paused: true, ..self.scene.tonight.clone() };
                vec![v1::Schedule::from(row).encode_to_vec()]
            }
            "RemoveSchedule" => {
                vec![v1::RemoveScheduleRequest { name: "tonight".to_owned() }.encode_to_vec()]
            }
            "DueSchedules" => vec![v1::DueSchedulesRequest { limit: u32::MAX }.encode_to_vec()],
            "FireSchedule" => self.fires(),
            _ => panic!("no message for {method}"),
        }
    }

    /// Ticks that are not due, and one that is. Each comes with a task of the caller's choice, and with a
    /// next tick in a far year.
    fn fires(&self) -> Vec<Vec<u8>> {
        let chosen = |at: Option<Timestamp>, name: &str| {
            v1::FireScheduleRequest {
                name: name.to_owned(),
                tick_ms: at.map_or(0, Timestamp::as_ms),
                task: Some(windlass_core::NewTask { priority: 100, ..task("a", "default") }.into()),
                next_at_ms: Some(FAR_MS),
            }
            .encode_to_vec()
        };
        let (due, tonight) = (&self.scene.due, &self.scene.tonight);
        vec![
            chosen(tonight.next_at, "tonight"),
            chosen(due.next_at, "tonight"),
            chosen(tonight.next_at, "due"),
            chosen(due.next_at, "due"),
        ]
    }
}

fn done() -> End {
    End::Done(v1::Done::default())
}

fn end<M: Message>(lease: v1::Lease, request: impl Fn(Option<v1::Lease>) -> M) -> Vec<u8> {
    request(Some(lease)).encode_to_vec()
}

/// The messages of a stream, one after another: each but the first needs its head here.
fn joined(messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let framed: Vec<_> = messages.map(|message| super::grpc::framed(&message)).collect();
    framed.concat()
}

fn enqueue() -> [v1::NewTask; 3] {
    let plain = task("a", "default");
    let in_job = windlass_core::NewTask { job: Some(name("j")), ..plain.clone() };
    let step = windlass_core::NewTask { workflow: Some(name("w")), ..plain.clone() };
    [plain, in_job, step].map(Into::into)
}

fn control(method: &str) -> Vec<Vec<u8>> {
    vec![match method {
        "ListQueues" | "ListJobs" | "ListWorkflows" => Vec::new(),
        "SetQueue" => v1::SetQueueRequest { queue: "default".to_owned(), paused: true }.encode_to_vec(),
        "GetJob" => v1::GetJobRequest { name: "j".to_owned() }.encode_to_vec(),
        "SetJob" => v1::SetJobRequest { name: "j".to_owned(), no_concurrency: true, ..Default::default() }
            .encode_to_vec(),
        "RemoveJob" => v1::RemoveJobRequest { name: "j".to_owned(), now: true }.encode_to_vec(),
        "GetWorkflow" => v1::GetWorkflowRequest { name: "w".to_owned() }.encode_to_vec(),
        "ChangeWorkflow" => {
            let action = v1::WorkflowAction::Skip.into();
            v1::ChangeWorkflowRequest { name: "w".to_owned(), action }.encode_to_vec()
        }
        _ => panic!("no message for {method}"),
    }]
}
