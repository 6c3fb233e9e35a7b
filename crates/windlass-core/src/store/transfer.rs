//! The content of a whole store on its way into another one: plain rows, part by part, with numbers as they
//! are stored.
//!
//! One store reads [`Rows`] out, the other writes them; this file is what they share. Times are milliseconds,
//! states and policies are their codes.

/// What is copied, in this order. Tasks come before keys, because the target computes a key's digest
/// from its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Pairs of queue and kind.
    Lanes,
    /// Queues that are paused.
    PausedQueues,
    /// Jobs.
    Jobs,
    /// Workflows.
    Workflows,
    /// Recurring tasks.
    Schedules,
    /// Unfinished and dead tasks.
    Tasks,
    /// Done and cancelled tasks.
    History,
    /// Idempotency keys.
    Keys,
}

impl Part {
    /// Every part, in order.
    pub const ALL: [Self; 8] = [
        Self::Lanes,
        Self::PausedQueues,
        Self::Jobs,
        Self::Workflows,
        Self::Schedules,
        Self::Tasks,
        Self::History,
        Self::Keys,
    ];

    /// The part's name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lanes => "lanes",
            Self::PausedQueues => "paused queues",
            Self::Jobs => "jobs",
            Self::Workflows => "workflows",
            Self::Schedules => "schedules",
            Self::Tasks => "tasks",
            Self::History => "history",
            Self::Keys => "keys",
        }
    }
}

/// Some rows of one part, in its order.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is what its row type says")]
pub enum Rows {
    Lanes(Vec<LaneRow>),
    PausedQueues(Vec<PausedQueueRow>),
    Jobs(Vec<JobRow>),
    Workflows(Vec<WorkflowRow>),
    Schedules(Vec<ScheduleRow>),
    Tasks(Vec<TaskRow>),
    History(Vec<HistoryRow>),
    Keys(Vec<KeyRow>),
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Lanes(rows) => rows.len(),
            Self::PausedQueues(rows) => rows.len(),
            Self::Jobs(rows) => rows.len(),
            Self::Workflows(rows) => rows.len(),
            Self::Schedules(rows) => rows.len(),
            Self::Tasks(rows) => rows.len(),
            Self::History(rows) => rows.len(),
            Self::Keys(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "fields are columns, which the schemas of the stores describe")]
        pub struct $name { $(pub $field: $type,)* })*
    };
}

rows! {
    /// A pair of queue and kind; its id is the one that rows of tasks name.
    LaneRow { id: i64, queue: String, kind: String, }
    /// A queue that is paused.
    PausedQueueRow { queue: String, paused_at: i64, }
    /// A job.
    JobRow {
        name: String, state: i16, concurrency: Option<i32>, delay_ms: Option<i64>, last_start: Option<i64>,
        is_over_limit: bool, is_at_limit: bool, gone_before: Option<i64>, created_at: i64,
    }
    /// A workflow.
    WorkflowRow {
        name: String, on_failure: i16, blocked_by: Option<i64>, forgiven_step: Option<i64>, created_at: i64,
    }
    /// A recurring task.
    ScheduleRow {
        name: String, spec: String, paused: bool, next_at: Option<i64>, last_at: Option<i64>, last_task: Option<i64>,
    }
    /// An unfinished or dead task. None of them is running. For a waiting step, `due_at` is its later start.
    TaskRow {
        id: i64, lane: i64, state: i16, priority: i32, ready_seq: Option<i64>, due_at: Option<i64>, ended_at: Option<i64>,
        lease: i32, attempt: i32, max_attempts: i32, crashes: i32, worker: Option<i64>, claim_no: Option<i64>,
        claimed_at: Option<i64>, timeout_ms: Option<i64>, retry: Option<String>, job: Option<String>,
        workflow: Option<String>, step: Option<i64>, on_failure: Option<i16>, key: Option<String>,
        cancel: Option<String>, progress: Option<String>, error: Option<String>, log: Option<String>, encoding: i16,
        payload: Vec<u8>, trace: Option<String>,
    }
    /// A done or cancelled task.
    HistoryRow {
        id: i64, lane: i64, state: i16, priority: i32, ran: bool, started_at: Option<i64>, ended_at: i64, lease: i32,
        attempt: i32, max_attempts: i32, worker: Option<i64>, timeout_ms: Option<i64>, job: Option<String>,
        workflow: Option<String>, key: Option<String>, progress: Option<String>, error: Option<String>,
        log: Option<String>, output_encoding: Option<i16>, output: Option<Vec<u8>>, encoding: i16, payload: Vec<u8>,
    }
    /// An idempotency key. Its digest is computed from its task, because each store has its own form.
    KeyRow { queue: String, key: String, task: i64, expires_at: Option<i64>, }
}

/// The highest numbers that a store has given out. The store that takes the rows continues above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The last task id that was given out.
    pub last_id: i64,
    /// The last place in the ready line, or the last step of a workflow, whichever is higher.
    pub last_seq: i64,
    /// The last worker.
    pub last_worker: i64,
    /// When the first task of the history ended, and the last.
    pub ended: Option<(i64, i64)>,
}

/// How many rows of each sort a store has, by name: task states and other parts.
pub type Counts = std::collections::BTreeMap<String, u64>;
