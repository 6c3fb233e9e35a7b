//! Jobs and workflows, over gRPC.

use async_trait::async_trait;
use windlass_core::{
    Gates, JobChange, JobRecord, Name, Payload, Result, TaskRecord, WorkflowAction, WorkflowRecord,
    gate::GateView, store::PAGE_MAX,
};
use windlass_proto::{convert::text, v1};

use crate::store::{RemoteStore, all, found};

#[async_trait]
impl Gates for RemoteStore {
    async fn set_job(&self, name: &Name, change: &JobChange) -> Result<JobRecord> {
        let request = v1::SetJobRequest::of(name, change);
        self.change(|wire| async move { wire.control().set_job(request).await }).await?.try_into()
    }

    async fn jobs(&self, after: Option<&Name>, limit: u32) -> Result<Vec<JobRecord>> {
        let request = v1::ListJobsRequest { after: text(after), limit: limit.clamp(1, PAGE_MAX) };
        all(self.look(|wire| async move { wire.control().list_jobs(request).await }).await?.jobs)
    }

    async fn job(&self, name: &Name) -> Result<Option<JobRecord>> {
        let request = v1::GetJobRequest { name: name.to_string() };
        let answer = self.look(|wire| async move { wire.control().get_job(request).await }).await;
        found(answer)?.map(TryInto::try_into).transpose()
    }

    async fn remove_job(&self, name: &Name, now: bool) -> Result<u64> {
        let request = v1::RemoveJobRequest { name: name.to_string(), now };
        Ok(self.change(|wire| async move { wire.control().remove_job(request).await }).await?.tasks)
    }

    async fn workflows(
        &self,
        blocked: bool,
        after: Option<&Name>,
        limit: u32,
    ) -> Result<Vec<WorkflowRecord>> {
        let request =
            v1::ListWorkflowsRequest { blocked, after: text(after), limit: limit.clamp(1, PAGE_MAX) };
        all(self.look(|wire| async move { wire.control().list_workflows(request).await }).await?.workflows)
    }

    async fn workflow(&self, name: &Name) -> Result<Option<WorkflowRecord>> {
        let request = v1::GetWorkflowRequest { name: name.to_string() };
        let answer = self.look(|wire| async move { wire.control().get_workflow(request).await }).await;
        found(answer)?.map(TryInto::try_into).transpose()
    }

    async fn change_workflow(&self, name: &Name, action: WorkflowAction) -> Result<u64> {
        let request = v1::ChangeWorkflowRequest {
            name: name.to_string(),
            action: v1::WorkflowAction::from(action).into(),
        };
        Ok(self.change(|wire| async move { wire.control().change_workflow(request).await }).await?.tasks)
    }

    async fn view(&self, task: &TaskRecord) -> Result<GateView> {
        // The payload and the output are not needed.
        let task = TaskRecord { payload: Payload::bytes(Vec::new()), output: None, ..task.clone() };
        let request = v1::ViewGatesRequest { task: Some(task.into()) };
        self.look(|wire| async move { wire.store().view_gates(request).await }).await?.try_into()
    }
}
