//! Random steps that fit the state of the model. They name tasks, workers and lanes by number.

use proptest::{collection::vec, option, prelude::*, sample};
use windlass_core::{Name, OnFailure, State, WorkflowAction};

use super::reference::Reference;

/// More tasks than a run has.
pub const MANY: u32 = 10_000;
/// Lanes: each pair of queue and kind.
const LANES: u8 = 4;
/// Jobs, and workflows, that tasks can name.
pub const GATES: u8 = 3;
/// The limit that tasks bring for a job that does not exist yet. All bring the same one, because each store
/// may choose which of several counts.
pub const GIVEN_LIMIT: u32 = 3;
/// Workers that may be registered at once.
const WORKERS_MAX: usize = 3;
/// Most tasks of a run, so that comparing all of them stays fast.
const TASKS_MAX: usize = 60;

/// One step.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is named after the call that it makes")]
pub enum Op {
    Register {
        /// Whether it handles only the first kind.
        narrow: bool,
    },
    Enqueue {
        drafts: Vec<Draft>,
    },
    Claim {
        demands: Vec<Want>,
    },
    /// A claim that arrives after its unclaim.
    LateClaim {
        want: Want,
    },
    Settle {
        worker: usize,
        ends: Vec<End>,
    },
    /// Sends the worker's last batch again.
    Replay {
        worker: usize,
    },
    Unclaim {
        worker: usize,
        back: u64,
    },
    Reconcile {
        worker: usize,
        kept: Vec<(usize, u32)>,
        back: u64,
    },
    Progress {
        worker: usize,
        task: usize,
        lease: u32,
        text: u8,
    },
    Cancel {
        tasks: Vec<usize>,
    },
    Redrive {
        tasks: Vec<usize>,
        seconds: u64,
    },
    Remove {
        tasks: Vec<usize>,
    },
    Renew {
        worker: usize,
        available: u32,
    },
    Retire {
        worker: usize,
    },
    Advance {
        seconds: u64,
    },
    Promote,
    Expire,
    Pause {
        queue: u8,
        paused: bool,
    },
    Retain,
    SetJob {
        job: u8,
        change: Change,
    },
    RemoveJob {
        job: u8,
        now: bool,
    },
    ChangeWorkflow {
        workflow: u8,
        action: WorkflowAction,
    },
    Admit,
}

/// A change of a job.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names are those of what operators do")]
pub enum Change {
    Limit(Option<u32>),
    DelaySeconds(Option<u64>),
    Pause,
    Resume,
    Cancel { now: bool },
}

/// A task to enqueue.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are those of a new task")]
pub struct Draft {
    pub lane: u8,
    pub priority: i32,
    pub start_in_s: Option<u64>,
    pub key: Option<(u8, bool)>,
    pub payload: u8,
    /// Zero makes the task invalid, and the batch with it.
    pub max_attempts: u32,
    pub job: Option<u8>,
    /// Whether it brings the limit of its job, see [`GIVEN_LIMIT`].
    pub gives_limit: bool,
    pub workflow: Option<u8>,
    pub on_failure: Option<OnFailure>,
}

/// One worker's part of a claim.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are those of a demand")]
pub struct Want {
    pub worker: usize,
    pub n: u32,
    /// A bit for each lane.
    pub lanes: u8,
}

/// The end of one attempt.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are those of a settlement")]
pub struct End {
    pub task: usize,
    pub lease: u32,
    pub how: How,
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names are those of settlements")]
pub enum How {
    Done { output: bool },
    Retry { seconds: u64 },
    Snooze { seconds: u64 },
    Release,
    Dead,
    Cancelled,
}

/// The queue and the kind of a lane.
pub fn lane(number: u8) -> (Name, Name) {
    let name = |text: &str| Name::new("name", text).unwrap_or_else(|_| unreachable!("a constant"));
    let queue = queue_name(number / 2);
    (queue, name(if number.is_multiple_of(2) { "a" } else { "b" }))
}

/// The name of a queue.
pub fn queue_name(number: u8) -> Name {
    Name::new("queue", if number == 0 { "q" } else { "r" }).unwrap_or_else(|_| unreachable!("a constant"))
}

/// The name of a job.
pub fn job_name(number: u8) -> Name {
    Name::new("job", format!("j{number}")).unwrap_or_else(|_| unreachable!("a valid name"))
}

/// The name of a workflow.
pub fn workflow_name(number: u8) -> Name {
    Name::new("workflow", format!("w{number}")).unwrap_or_else(|_| unreachable!("a valid name"))
}

/// Every kind.
pub fn kinds() -> Vec<Name> {
    (0..2).map(|number| lane(number).1).collect()
}

/// The steps that may come next.
pub fn next(reference: &Reference) -> BoxedStrategy<Op> {
    let tasks = reference.book().tasks();
    let registered = reference.registered();
    let dead = reference.numbers_in(State::Dead);
    let mut choices: Vec<(u32, BoxedStrategy<Op>)> = vec![
        (3, Just(Op::Promote).boxed()),
        (3, Just(Op::Expire).boxed()),
        (5, advance()),
        (1, (0..2_u8, any::<bool>()).prop_map(|(queue, paused)| Op::Pause { queue, paused }).boxed()),
        (1, Just(Op::Retain).boxed()),
    ];
    if registered.len() < WORKERS_MAX {
        choices.push((
            if registered.is_empty() { 30 } else { 4 },
            any::<bool>().prop_map(|narrow| Op::Register { narrow }).boxed(),
        ));
    }
    if tasks < TASKS_MAX {
        let drafts = vec(draft(), 1..4).prop_map(|drafts| Op::Enqueue { drafts });
        choices.push((if tasks < 8 { 12 } else { 3 }, drafts.boxed()));
    }
    if tasks > 0 {
        let some = vec(0..tasks, 1..3).prop_map(|tasks| Op::Cancel { tasks: distinct(tasks) });
        choices.push((2, some.boxed()));
        let some = (vec(0..tasks, 1..3), 0..20_u64)
            .prop_map(|(tasks, seconds)| Op::Redrive { tasks: distinct(tasks), seconds });
        choices.push((1, some.boxed()));
    }
    if !dead.is_empty() {
        let one = sample::select(dead.clone()).prop_map(|task| Op::Remove { tasks: vec![task] });
        choices.push((1, one.boxed()));
        let one = (sample::select(dead), 0..20_u64)
            .prop_map(|(task, seconds)| Op::Redrive { tasks: vec![task], seconds });
        choices.push((3, one.boxed()));
    }
    if reference.book().workers() > 0 {
        choices.extend(claims(reference));
    }
    for worker in registered {
        choices.extend(worker_ops(reference, worker));
    }
    choices.extend(gate_ops(reference));
    proptest::strategy::Union::new_weighted(choices).boxed()
}

/// What operators do with jobs and workflows, mostly with existing ones.
fn gate_ops(reference: &Reference) -> Vec<(u32, BoxedStrategy<Op>)> {
    let set = (0..GATES, change()).prop_map(|(job, change)| Op::SetJob { job, change });
    let action = prop_oneof![
        3 => Just(WorkflowAction::Retry),
        2 => Just(WorkflowAction::Skip),
        1 => Just(WorkflowAction::Cancel),
    ];
    let named =
        (0..GATES, action.clone()).prop_map(|(workflow, action)| Op::ChangeWorkflow { workflow, action });
    let mut choices = vec![(3, set.boxed()), (1, named.boxed()), (1, Just(Op::Admit).boxed())];
    let used = reference.jobs_in_use();
    if !used.is_empty() {
        let remove = (sample::select(used), any::<bool>()).prop_map(|(job, now)| Op::RemoveJob { job, now });
        choices.push((1, remove.boxed()));
    }
    let blocked = reference.blocked_workflows();
    if !blocked.is_empty() {
        let decide = (sample::select(blocked), action)
            .prop_map(|(workflow, action)| Op::ChangeWorkflow { workflow, action });
        choices.push((3, decide.boxed()));
    }
    choices
}

fn change() -> BoxedStrategy<Change> {
    prop_oneof![
        4 => option::weighted(0.8, 0..4_u32).prop_map(Change::Limit),
        2 => option::weighted(0.5, 1..4_u64).prop_map(Change::DelaySeconds),
        1 => Just(Change::Pause),
        4 => Just(Change::Resume),
        1 => any::<bool>().prop_map(|now| Change::Cancel { now }),
    ]
    .boxed()
}

fn advance() -> BoxedStrategy<Op> {
    let seconds = prop_oneof![6 => 1..5_u64, 2 => Just(8), 3 => Just(12), 1 => Just(40), 1 => Just(3_600)];
    seconds.prop_map(|seconds| Op::Advance { seconds }).boxed()
}

fn draft() -> BoxedStrategy<Draft> {
    let start = prop_oneof![4 => Just(None), 1 => (1..20_u64).prop_map(Some)];
    let attempts = prop_oneof![20 => 1..4_u32, 1 => Just(0)];
    (
        0..LANES,
        -1..=1_i32,
        start,
        option::weighted(0.25, (0..5_u8, any::<bool>())),
        0..2_u8,
        attempts,
        gates(),
        any::<bool>(),
    )
        .prop_map(|(lane, priority, start_in_s, key, payload, max_attempts, gates, gives_limit)| Draft {
            lane,
            priority,
            start_in_s,
            key,
            payload,
            max_attempts,
            job: gates.0,
            gives_limit: gives_limit && gates.0.is_some(),
            workflow: gates.1,
            on_failure: gates.2.filter(|_| gates.1.is_some()),
        })
        .boxed()
}

/// Two in five tasks are plain, the others have a job, a workflow or both.
fn gates() -> BoxedStrategy<(Option<u8>, Option<u8>, Option<OnFailure>)> {
    let policy = || option::weighted(0.6, sample::select(OnFailure::ALL.to_vec()));
    prop_oneof![
        4 => Just((None, None, None)),
        3 => (0..GATES).prop_map(|job| (Some(job), None, None)),
        2 => (0..GATES, policy()).prop_map(|(workflow, policy)| (None, Some(workflow), policy)),
        1 => (0..GATES, 0..GATES, policy())
            .prop_map(|(job, workflow, policy)| (Some(job), Some(workflow), policy)),
    ]
    .boxed()
}

/// Claims of every worker that ever registered: those that are gone are refused.
fn claims(reference: &Reference) -> Vec<(u32, BoxedStrategy<Op>)> {
    let all = reference.book().workers();
    let registered = reference.registered();
    let mut who = vec![(1, (0..all).boxed())];
    if !registered.is_empty() {
        who.push((12, sample::select(registered).boxed()));
    }
    let who = proptest::strategy::Union::new_weighted(who).boxed();
    let lanes = prop_oneof![3 => Just(15), 2 => 1..16_u8];
    let want = (who, 1..5_u32, lanes).prop_map(|(worker, n, lanes)| Want { worker, n, lanes }).boxed();
    let one = want.clone().prop_map(|want| Op::Claim { demands: vec![want] });
    let two = (want.clone(), want.clone())
        .prop_filter("two workers", |(a, b)| a.worker != b.worker)
        .prop_map(|(a, b)| Op::Claim { demands: vec![a, b] });
    let mut claims = vec![(9, one.boxed()), (1, want.prop_map(|want| Op::LateClaim { want }).boxed())];
    if all > 1 {
        claims.push((2, two.boxed()));
    }
    claims
}

/// What one registered worker may do.
fn worker_ops(reference: &Reference, worker: usize) -> Vec<(u32, BoxedStrategy<Op>)> {
    let held = reference.held_by(worker);
    let mut choices = vec![
        (2, (0..9_u32).prop_map(move |available| Op::Renew { worker, available }).boxed()),
        (1, (0..2_u64).prop_map(move |back| Op::Unclaim { worker, back }).boxed()),
        (1, Just(Op::Replay { worker }).boxed()),
    ];
    if reference.registered().len() > 1 {
        choices.push((1, Just(Op::Retire { worker }).boxed()));
    }
    let kept = sample::subsequence(held.clone(), 0..=held.len());
    let reconcile = (kept, 0..2_u64).prop_map(move |(kept, back)| {
        // For the first task also an older lease, which the worker has lost.
        let older = kept.first().filter(|_| back == 1).map(|held| (held.task, held.lease - 1));
        let kept = kept.into_iter().map(|held| (held.task, held.lease)).chain(older).collect();
        Op::Reconcile { worker, kept, back }
    });
    choices.push((1, reconcile.boxed()));
    if !held.is_empty() {
        let some = sample::subsequence(held.clone(), 1..=held.len());
        let hows = vec(how(), held.len());
        let stale = option::weighted(0.2, (not_held(reference, worker), how()));
        let mine: Vec<usize> = held.iter().map(|held| held.task).collect();
        let settle = (some, hows, stale).prop_map(move |(some, hows, stale)| {
            let mut ends: Vec<_> = some.into_iter().zip(hows).map(|(held, how)| held.end(how)).collect();
            if let Some(((task, lease), how)) = stale
                && !mine.contains(&task)
            {
                ends.push(End { task, lease, how });
            }
            Op::Settle { worker, ends }
        });
        choices.push((8, settle.boxed()));
        let progress = (sample::select(held), 0..2_u32, 0..3_u8).prop_map(move |(held, behind, text)| {
            Op::Progress { worker, task: held.task, lease: held.lease - behind, text }
        });
        choices.push((1, progress.boxed()));
    }
    choices
}

/// Leases that a worker does not hold: any number of any task, and often one that another worker holds.
fn not_held(reference: &Reference, worker: usize) -> BoxedStrategy<(usize, u32)> {
    let any = (0..reference.book().tasks(), 0..4_u32).boxed();
    let others = reference.registered().into_iter().filter(|other| *other != worker);
    let held: Vec<(usize, u32)> =
        others.flat_map(|other| reference.held_by(other)).map(|held| (held.task, held.lease)).collect();
    if held.is_empty() { any } else { prop_oneof![any, sample::select(held)].boxed() }
}

fn how() -> BoxedStrategy<How> {
    prop_oneof![
        4 => any::<bool>().prop_map(|output| How::Done { output }),
        3 => (0..20_u64).prop_map(|seconds| How::Retry { seconds }),
        2 => (0..20_u64).prop_map(|seconds| How::Snooze { seconds }),
        2 => Just(How::Release),
        1 => Just(How::Dead),
        1 => Just(How::Cancelled),
    ]
    .boxed()
}

fn distinct(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
