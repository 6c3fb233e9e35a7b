//! Jobs: read, set, pause, cancel, remove.

use windlass_core::{JobChange, JobState, Name};

use super::{Operations, Result, duration, list::page_limit};
use crate::api::{ErrorCode, ErrorDetail, JobRemoval, JobRequest, JobView, Jobs};

impl Operations {
    /// One page of jobs by name, after `after` if given.
    pub async fn jobs(&self, after: Option<&Name>, limit: Option<u32>) -> Result<Jobs> {
        let limit = page_limit(limit)?;
        let jobs = self.store.gates().jobs(after, limit).await?;
        let next = (jobs.len() as u32 >= limit).then(|| jobs.last().map(|job| job.name.clone())).flatten();
        Ok(Jobs { jobs: jobs.into_iter().map(JobView::from).collect(), next })
    }

    /// One job.
    pub async fn job(&self, job: &str) -> Result<JobView> {
        let name = Name::new("job", job)?;
        let found = self.store.gates().job(&name).await?;
        found.map(JobView::from).ok_or_else(|| missing(&name))
    }

    /// Creates a job or changes it. Waiting tasks follow the change at once; running tasks only if the caller
    /// asks for that.
    pub async fn set_job(&self, job: &str, request: JobRequest) -> Result<JobView> {
        let name = Name::new("job", job)?;
        let change = change(&request)?;
        Ok(self.store.gates().set_job(&name, &change).await?.into())
    }

    /// Cancels the waiting tasks of a job. The job is removed when its last running task has ended.
    pub async fn remove_job(&self, job: &str, now: bool) -> Result<JobRemoval> {
        let name = Name::new("job", job)?;
        let gates = self.store.gates();
        let cancelled = gates.remove_job(&name, now).await.map_err(|error| match error {
            windlass_core::Error::NotFound(_) => missing(&name),
            other => other.into(),
        })?;
        let left = gates.job(&name).await?.filter(|job| job.state == JobState::Removing);
        Ok(JobRemoval { job: name, cancelled, running: left.map_or(0, |job| job.running) })
    }
}

fn change(request: &JobRequest) -> Result<JobChange> {
    if request.state == Some(JobState::Removing) {
        return Err(ErrorDetail::invalid("state must be active, paused or cancelled")
            .hint("a job is removed with DELETE /v1/jobs/{name}"));
    }
    if request.now && request.state != Some(JobState::Cancelled) {
        return Err(ErrorDetail::invalid(
            "now asks running tasks to end; use it only with \"state\": \"cancelled\"",
        ));
    }
    let delay = match request.delay_ms {
        None => None,
        // A delay of zero between two starts is no delay.
        Some(None | Some(0)) => Some(None),
        Some(Some(ms)) => Some(Some(duration("delay_ms", ms)?)),
    };
    Ok(JobChange { concurrency: request.concurrency, delay, state: request.state, now: request.now })
}

fn missing(name: &Name) -> ErrorDetail {
    ErrorDetail::new(ErrorCode::NotFound, format!("job {name} not found"))
        .hint("a job exists from its first task on, or after it was set")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<JobChange> {
        change(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn null_removes_a_limit_and_an_absent_field_keeps_it() {
        for (text, concurrency, delay) in [
            ("{}", None, None),
            (r#"{"concurrency":null,"delay_ms":null}"#, Some(None), Some(None)),
            (r#"{"concurrency":0,"delay_ms":0}"#, Some(Some(0)), Some(None)),
            (r#"{"concurrency":3,"delay_ms":200}"#, Some(Some(3)), Some(Some(Duration::from_millis(200)))),
        ] {
            let change = read(text).unwrap();
            assert_eq!((change.concurrency, change.delay), (concurrency, delay), "{text}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for text in [
            r#"{"state":"removing"}"#,
            r#"{"now":true}"#,
            r#"{"state":"paused","now":true}"#,
            r#"{"delay_ms":99999999999999}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(r#"{"state":"cancelled","now":true}"#).unwrap().now);
    }
}
