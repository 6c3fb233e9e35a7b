//! Names with invisible characters are refused in every gRPC field that takes a name.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use tonic::Code;
use windlass_proto::v1;

use crate::{
    effects::grpc::{framed, send},
    harness::Api,
    names::unsafe_letters,
    wire::Wire,
};

/// The parts of a descriptor set that name methods and the texts of their requests.
#[derive(Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Type>,
    #[prost(message, repeated, tag = "6")]
    services: Vec<Service>,
}

#[derive(Message)]
struct Type {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
}

#[derive(Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "5")]
    kind: i32,
    #[prost(string, tag = "6")]
    type_name: String,
}

#[derive(Message)]
struct Service {
    #[prost(message, repeated, tag = "2")]
    methods: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "2")]
    input: String,
}

/// `TYPE_STRING` of a descriptor.
const STRING: i32 = 9;

/// Every text field of a message that a client sends, as `Message.field`.
fn texts() -> BTreeSet<String> {
    let files = Files::decode(windlass_proto::DESCRIPTORS).unwrap().files;
    let types: BTreeMap<_, _> =
        files.iter().flat_map(|file| &file.messages).map(|kind| (&*kind.name, kind)).collect();
    let short = |name: &str| name.rsplit('.').next().unwrap().to_owned();
    let methods = files.iter().flat_map(|file| &file.services).flat_map(|service| &service.methods);
    let mut open: Vec<String> = methods.map(|method| short(&method.input)).collect();
    let (mut seen, mut texts) = (BTreeSet::new(), BTreeSet::new());
    while let Some(name) = open.pop() {
        let Some(message) = types.get(&*name).filter(|_| seen.insert(name.clone())) else { continue };
        for field in &message.fields {
            if field.kind == STRING {
                texts.insert(format!("{name}.{}", field.name));
            }
            open.push(short(&field.type_name));
        }
    }
    texts
}

/// Text fields that are not names: ids, keys, texts for people, and the specification of a schedule. The
/// names in a specification are checked when the schedule fires.
const NOT_NAMES: &[&str] = &[
    "Attempt.error",
    "Attempt.worker_id",
    "CancelTasksRequest.reason",
    "CancelTasksRequest.task_ids",
    "Cancelled.reason",
    "ClaimRequest.worker_id",
    "Dead.error",
    "Demand.worker_id",
    "Done.note",
    "FailRequest.error",
    "FindKeyRequest.key",
    "GetTaskRequest.task_id",
    "HeartbeatRequest.reason",
    "HeartbeatRequest.worker_id",
    "Held.task_id",
    "Hello.worker_id",
    "Lease.task_id",
    "Lease.worker_id",
    "ListTasksRequest.after",
    "ListTasksRequest.cause",
    "ListTasksRequest.key",
    "ListTasksRequest.task_ids",
    "ListTasksRequest.worker_id",
    "NewTask.key",
    "NewTask.traceparent",
    "ProgressRequest.progress",
    "ProgressRequest.task_id",
    "ProgressRequest.worker_id",
    "ReconcileRequest.worker_id",
    "RegisterRequest.host",
    "RegisterRequest.version",
    "RemoveTasksRequest.task_ids",
    "RepeatTaskRequest.task_id",
    "RetireRequest.worker_id",
    "RetryAt.error",
    "RetryTask.task_id",
    "Schedule.last_task",
    "Schedule.spec",
    "SetWorkerRequest.worker_id",
    "SettleBatch.worker_id",
    "Task.cancel_requested",
    "Task.error",
    "Task.id",
    "Task.key",
    "Task.progress",
    "Task.worker_id",
    "TaskHeartbeatRequest.task_id",
    "TaskHeartbeatRequest.worker_id",
    "UnclaimRequest.worker_id",
    "WaitTasksRequest.task_ids",
];

/// Names that the server gave to the client, or of existing tasks. Nothing is created with them.
const OF_WHAT_IS_THERE: &[&str] = &[
    "ClaimRequest.kinds",
    "ClaimRequest.queues",
    "Demand.prefers",
    "Lane.kind",
    "Lane.queue",
    "Lease.job",
    "Lease.workflow",
    "QueueCounts.queue",
    "Settlement.job",
    "Settlement.workflow",
    "Task.job",
    "Task.workflow",
];

/// A field that takes a name, and a call with a name in that field.
type Entrance = (&'static str, &'static str, Vec<u8>);

/// Calls that create something with a name, which must be safe.
fn makers(name: &str) -> Vec<Entrance> {
    let (own, plain, names) = (|| name.to_owned(), vec!["a".to_owned()], vec![name.to_owned()]);
    let task = |change: fn(&mut v1::NewTask, String)| {
        let mut task = v1::NewTask { kind: "a".to_owned(), ..Default::default() };
        change(&mut task, own());
        task
    };
    let mut entrances = Vec::new();
    for (field, task) in [
        ("NewTask.kind", task(|task, name| task.kind = name)),
        ("NewTask.queue", task(|task, name| task.queue = name)),
        ("NewTask.job", task(|task, name| task.job = name)),
        ("NewTask.workflow", task(|task, name| task.workflow = name)),
    ] {
        let batch = v1::EnqueueBatchRequest { tasks: vec![task.clone()] };
        entrances.push((field, "Tasks/EnqueueBatch", batch.encode_to_vec()));
        entrances.push((field, "Tasks/Enqueue", v1::EnqueueRequest { task: Some(task) }.encode_to_vec()));
    }
    for (field, kinds, queues) in
        [("RegisterRequest.kinds", names.clone(), vec![]), ("RegisterRequest.queues", plain, names)]
    {
        let register = v1::RegisterRequest { kinds, queues, max_capacity: 1, ..Default::default() };
        entrances.push((field, "Workers/Register", register.encode_to_vec()));
        let hello = v1::Hello { register: Some(register), ..Default::default() };
        let up = v1::WorkUp { message: Some(v1::work_up::Message::Hello(hello)) };
        entrances.push((field, "Workers/Work", up.encode_to_vec()));
    }
    let pause = v1::SetQueueRequest { queue: own(), paused: true };
    let job = v1::SetJobRequest { name: own(), concurrency: Some(3), ..Default::default() };
    let spec = r#"{"cron":"0 3 * * *","task":{"kind":"a"}}"#.to_owned();
    let schedule = v1::Schedule { name: own(), spec, ..Default::default() };
    entrances.extend([
        ("SetQueueRequest.queue", "Control/SetQueue", pause.encode_to_vec()),
        ("SetJobRequest.name", "Control/SetJob", job.encode_to_vec()),
        ("Schedule.name", "Store/PutSchedule", schedule.encode_to_vec()),
    ]);
    entrances
}

/// Calls about one thing that they name.
fn about(name: &str) -> Vec<Entrance> {
    let own = || name.to_owned();
    let key = v1::FindKeyRequest { queue: own(), key: "k".to_owned() };
    let get_job = v1::GetJobRequest { name: own() };
    let remove_job = v1::RemoveJobRequest { name: own(), now: false };
    let get_workflow = v1::GetWorkflowRequest { name: own() };
    let workflow = v1::ChangeWorkflowRequest { name: own(), action: v1::WorkflowAction::Cancel.into() };
    let schedule = v1::RemoveScheduleRequest { name: own() };
    let fire = v1::FireScheduleRequest { name: own(), ..Default::default() };
    vec![
        ("FindKeyRequest.queue", "Tasks/FindKey", key.encode_to_vec()),
        ("GetJobRequest.name", "Control/GetJob", get_job.encode_to_vec()),
        ("RemoveJobRequest.name", "Control/RemoveJob", remove_job.encode_to_vec()),
        ("GetWorkflowRequest.name", "Control/GetWorkflow", get_workflow.encode_to_vec()),
        ("ChangeWorkflowRequest.name", "Control/ChangeWorkflow", workflow.encode_to_vec()),
        ("RemoveScheduleRequest.name", "Store/RemoveSchedule", schedule.encode_to_vec()),
        ("FireScheduleRequest.name", "Store/FireSchedule", fire.encode_to_vec()),
    ]
}

/// Calls that list. They accept unsafe names, which older versions allowed: a page may start after such a
/// name.
fn lists(name: &str) -> Vec<Entrance> {
    let (own, plain, names) = (|| name.to_owned(), vec!["a".to_owned()], vec![name.to_owned()]);
    let list = |change: fn(&mut v1::ListTasksRequest, String)| {
        let mut list = v1::ListTasksRequest::default();
        change(&mut list, own());
        list.encode_to_vec()
    };
    let lanes = |kinds: &[String], queues: &[String]| {
        v1::ListLanesRequest { kinds: kinds.to_vec(), queues: queues.to_vec() }.encode_to_vec()
    };
    let jobs = v1::ListJobsRequest { after: own(), limit: 1 };
    let workflows = v1::ListWorkflowsRequest { after: own(), limit: 1, ..Default::default() };
    vec![
        ("ListTasksRequest.kind", "Tasks/ListTasks", list(|list, name| list.kind = name)),
        ("ListTasksRequest.queue", "Tasks/ListTasks", list(|list, name| list.queue = name)),
        ("ListTasksRequest.job", "Tasks/ListTasks", list(|list, name| list.job = name)),
        ("ListTasksRequest.workflow", "Tasks/ListTasks", list(|list, name| list.workflow = name)),
        ("ListLanesRequest.kinds", "Store/ListLanes", lanes(&names, &[])),
        ("ListLanesRequest.queues", "Store/ListLanes", lanes(&plain, &names)),
        ("ListJobsRequest.after", "Control/ListJobs", jobs.encode_to_vec()),
        ("ListWorkflowsRequest.after", "Control/ListWorkflows", workflows.encode_to_vec()),
    ]
}

async fn answer(wire: &mut Wire, method: &str, message: &[u8]) -> Code {
    send(wire, &format!("windlass.v1.{method}"), framed(message), None).await.code()
}

#[tokio::test]
async fn a_name_with_an_unsafe_character_is_refused_over_grpc() {
    let api = Api::start().await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", api.address)).await;
    for (field, method, message) in makers("plain") {
        assert_eq!(answer(&mut wire, method, &message).await, Code::Ok, "{field} of {method}");
    }
    for (field, method, message) in about("plain") {
        let code = answer(&mut wire, method, &message).await;
        assert!(matches!(code, Code::Ok | Code::NotFound), "{field} of {method}: {code:?}");
    }
    for letter in unsafe_letters() {
        let name = format!("a{letter}b");
        for (field, method, message) in [makers(&name), about(&name)].concat() {
            let code = answer(&mut wire, method, &message).await;
            assert_eq!(code, Code::InvalidArgument, "{field} of {method}, {letter:?}");
        }
    }
}

#[tokio::test]
async fn a_list_takes_an_old_name_with_an_unsafe_character() {
    let api = Api::start().await;
    let (mut wire, _) = Wire::connect(&format!("http://{}", api.address)).await;
    for (field, method, message) in lists("a\u{202e}b") {
        assert_eq!(answer(&mut wire, method, &message).await, Code::Ok, "{field} of {method}");
    }
}

#[test]
fn every_text_of_a_request_is_known_here() {
    let names = [makers("a"), about("a"), lists("a")].concat();
    let mut known: BTreeSet<_> = names.into_iter().map(|(field, ..)| field.to_owned()).collect();
    known.extend(NOT_NAMES.iter().chain(OF_WHAT_IS_THERE).map(|field| (*field).to_owned()));
    assert_eq!(texts(), known);
}
