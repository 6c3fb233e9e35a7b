//! What operators do with queues, jobs and workflows.

use tonic::{Request, Response};
use windlass_core::{Error, JobState, Name};
use windlass_proto::{
    convert::{some_name, texts},
    v1::{self, control_server::Control},
};

use super::{Answer, Api, status};
use crate::{access::Subject, api::ErrorDetail, operations::page_limit};

/// The limit of a list; zero means the default.
fn limit(given: u32) -> Result<u32, tonic::Status> {
    page_limit(Some(given).filter(|given| *given > 0)).map_err(status)
}

fn named(what: &str, text: &str) -> Result<Name, tonic::Status> {
    Name::new(what, text).map_err(status)
}

fn missing(what: &str, name: &Name) -> tonic::Status {
    status(Error::NotFound(format!("{what} {name}")))
}

#[async_trait::async_trait]
impl Control for Api {
    async fn list_queues(&self, _: Request<v1::ListQueuesRequest>) -> Answer<v1::ListQueuesResponse> {
        let lanes = self.store().lane_records().await.map_err(status)?;
        let paused = self.store().paused_queues().await.map_err(status)?;
        let lanes = lanes.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ListQueuesResponse { lanes, paused: texts(&paused) }))
    }

    async fn set_queue(&self, request: Request<v1::SetQueueRequest>) -> Answer<v1::SetQueueResponse> {
        Subject::tell(&request, |set| {
            format!("{} {}", if set.paused { "pause" } else { "resume" }, set.queue)
        });
        let request = request.into_inner();
        let queue = named("queue", &request.queue)?;
        let changed = self.store().set_queue_paused(&queue, request.paused).await.map_err(status)?;
        Ok(Response::new(v1::SetQueueResponse { changed }))
    }

    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Answer<v1::ListJobsResponse> {
        let request = request.into_inner();
        let after = some_name("after", &request.after).map_err(status)?;
        let jobs = self.store().gates().jobs(after.as_ref(), limit(request.limit)?).await.map_err(status)?;
        Ok(Response::new(v1::ListJobsResponse { jobs: jobs.into_iter().map(Into::into).collect() }))
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> Answer<v1::Job> {
        let name = named("job", &request.into_inner().name)?;
        let job = self.store().gates().job(&name).await.map_err(status)?;
        job.map(|job| Response::new(job.into())).ok_or_else(|| missing("job", &name))
    }

    async fn set_job(&self, request: Request<v1::SetJobRequest>) -> Answer<v1::Job> {
        Subject::tell(&request, |set| set.name.clone());
        let request = request.into_inner();
        let name = named("job", &request.name)?;
        let change = request.change();
        if change.state == Some(JobState::Removing) {
            return Err(status(ErrorDetail::invalid("a job is removed with RemoveJob")));
        }
        let job = self.store().gates().set_job(&name, &change).await.map_err(status)?;
        Ok(Response::new(job.into()))
    }

    async fn remove_job(&self, request: Request<v1::RemoveJobRequest>) -> Answer<v1::Changes> {
        Subject::tell(&request, |remove| remove.name.clone());
        let request = request.into_inner();
        let name = named("job", &request.name)?;
        let tasks = self.store().gates().remove_job(&name, request.now).await.map_err(status)?;
        Ok(Response::new(v1::Changes { tasks }))
    }

    async fn list_workflows(
        &self,
        request: Request<v1::ListWorkflowsRequest>,
    ) -> Answer<v1::ListWorkflowsResponse> {
        let request = request.into_inner();
        let after = some_name("after", &request.after).map_err(status)?;
        let limit = limit(request.limit)?;
        let found = self.store().gates().workflows(request.blocked, after.as_ref(), limit).await;
        let workflows = found.map_err(status)?.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::ListWorkflowsResponse { workflows }))
    }

    async fn get_workflow(&self, request: Request<v1::GetWorkflowRequest>) -> Answer<v1::Workflow> {
        let name = named("workflow", &request.into_inner().name)?;
        let found = self.store().gates().workflow(&name).await.map_err(status)?;
        found.map(|found| Response::new(found.into())).ok_or_else(|| missing("workflow", &name))
    }

    async fn change_workflow(&self, request: Request<v1::ChangeWorkflowRequest>) -> Answer<v1::Changes> {
        Subject::tell(&request, |change| {
            format!("{} {}", format!("{:?}", change.action()).to_lowercase(), change.name)
        });
        let request = request.into_inner();
        let name = named("workflow", &request.name)?;
        let Some(action) = request.action().known() else {
            return Err(status(ErrorDetail::invalid("action must be retry, skip or cancel")));
        };
        let tasks = self.store().gates().change_workflow(&name, action).await.map_err(status)?;
        Ok(Response::new(v1::Changes { tasks }))
    }
}
