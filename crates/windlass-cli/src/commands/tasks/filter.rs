//! The flags that select tasks. Every command that selects tasks has the same ones.

use clap::Args;
use windlass_core::{Name, State, Timestamp};
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
}

impl From<FilterArgs> for TaskFilter {
    fn from(args: FilterArgs) -> Self {
        let FilterArgs { state, kind, queue, job, workflow, since } = args;
        Self { state, kind, queue, job, workflow, since }
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
