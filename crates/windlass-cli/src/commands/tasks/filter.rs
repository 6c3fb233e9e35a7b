//! The flags that select tasks. Every command that selects tasks has the same ones.

use clap::Args;
use windlass_core::{Name, State, TaskId, Timestamp, WorkerId};
use windlass_server::api::TaskFilter;

use crate::duration;

/// Which tasks to select.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    /// Only this state: scheduled, waiting, held, ready, running, done, dead, cancelled
    #[arg(long)]
    pub state: Option<State>,
    /// Only this kind
    #[arg(long, value_parser = kind)]
    pub kind: Option<Name>,
    /// Only this queue
    #[arg(long, value_parser = queue)]
    pub queue: Option<Name>,
    /// Only this job
    #[arg(long, value_parser = job)]
    pub job: Option<Name>,
    /// Only this workflow
    #[arg(long, value_parser = workflow)]
    pub workflow: Option<Name>,
    /// Only tasks enqueued since then, such as 10m or 2027-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub since: Option<Timestamp>,
    /// Only tasks enqueued before then, such as 10m or 2027-01-31T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub until: Option<Timestamp>,
    /// Only dead tasks of this cause: the error of a group as `tasks ls --state dead` prints it
    #[arg(long, value_name = "ERROR")]
    pub cause: Option<String>,
    /// Only tasks that this worker runs or ran last, such as w7
    #[arg(long, value_name = "WORKER")]
    pub worker: Option<WorkerId>,
    /// Only tasks with this idempotency key
    #[arg(long)]
    pub key: Option<String>,
    /// Only this task; more than once for several
    #[arg(long, value_name = "ID")]
    pub id: Vec<TaskId>,
}

/// The flags of a filter, for messages.
pub const FLAGS: &str =
    "--state, --kind, --queue, --job, --workflow, --since, --until, --cause, --worker, --key, --id";

impl From<FilterArgs> for TaskFilter {
    fn from(args: FilterArgs) -> Self {
        let FilterArgs { state, kind, queue, job, workflow, since, until, cause, worker, key, id } = args;
        let worker = worker.map(|worker| worker.to_string());
        let ids = if id.is_empty() { None } else { Some(id) };
        Self { state, kind, queue, job, workflow, since, until, cause, worker, key, ids }
    }
}

fn kind(text: &str) -> Result<Name, windlass_core::Error> {
    Name::new("kind", text)
}

fn queue(text: &str) -> Result<Name, windlass_core::Error> {
    Name::new("queue", text)
}

fn job(text: &str) -> Result<Name, windlass_core::Error> {
    Name::new("job", text)
}

fn workflow(text: &str) -> Result<Name, windlass_core::Error> {
    Name::new("workflow", text)
}
