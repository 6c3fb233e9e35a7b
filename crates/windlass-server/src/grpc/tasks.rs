//! What clients do with tasks.

use std::time::Duration;

use tonic::{Request, Response};
use windlass_core::{
    Name, NewTask, TaskId,
    store::{Filter, Redrive},
};
use windlass_proto::{
    convert::{required, some_task_id, task_id},
    v1::{self, tasks_server::Tasks},
};

use super::{Answer, Api, status};
use crate::{
    access::Subject,
    api::{BULK_LIMIT_MAX, ErrorCode, ErrorDetail, WAIT_IDS_MAX, WAIT_MAX_MS},
    operations::{duration, page_limit},
};

#[async_trait::async_trait]
impl Tasks for Api {
    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Answer<v1::EnqueueResponse> {
        let speaker = self.speaker(&request)?;
        let task = required("task", request.into_inner().task).map_err(status)?;
        let task = NewTask::try_from(task).map_err(status)?;
        let answer = self.operations().enqueue_tasks(&speaker.caller, vec![task]).await.map_err(status)?;
        let Some(only) = answer.tasks.first() else {
            let message = "the store did not say which task it added";
            return Err(status(ErrorDetail::new(ErrorCode::UnknownOutcome, message)));
        };
        Ok(Response::new(v1::EnqueueResponse {
            task_id: only.id.to_string(),
            existing: only.existing,
            cancelled: only.cancelled,
            warnings: answer.warnings,
        }))
    }

    async fn enqueue_batch(
        &self,
        request: Request<v1::EnqueueBatchRequest>,
    ) -> Answer<v1::EnqueueBatchResponse> {
        let speaker = self.speaker(&request)?;
        let tasks = request.into_inner().tasks;
        self.operations().check_batch_len(tasks.len()).map_err(status)?;
        let tasks = tasks.into_iter().map(NewTask::try_from).collect::<Result<_, _>>().map_err(status)?;
        let answer = self.operations().enqueue_tasks(&speaker.caller, tasks).await.map_err(status)?;
        let tasks = answer.tasks.into_iter().map(|task| v1::EnqueuedTask {
            task_id: task.id.to_string(),
            existing: task.existing,
            cancelled: task.cancelled,
        });
        Ok(Response::new(v1::EnqueueBatchResponse { tasks: tasks.collect(), warnings: answer.warnings }))
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Answer<v1::Task> {
        let id = task_id(&request.into_inner().task_id).map_err(status)?;
        let task = self.operations().record(id).await.map_err(status)?;
        Ok(Response::new(self.operations().redacted(task).into()))
    }

    async fn list_tasks(&self, request: Request<v1::ListTasksRequest>) -> Answer<v1::ListTasksResponse> {
        let request = request.into_inner();
        let filter = Filter::try_from(&request).map_err(status)?;
        let after = some_task_id(&request.after).map_err(status)?;
        let limit = Some(request.limit).filter(|limit| *limit > 0);
        if request.summary {
            let limit = page_limit(limit).map_err(status)?;
            let page = self.store().summaries(&filter, after, limit).await.map_err(status)?;
            let next = page.next.map(|id| id.to_string()).unwrap_or_default();
            let tasks = page.tasks.into_iter().map(Into::into).collect();
            return Ok(Response::new(v1::ListTasksResponse { tasks, next }));
        }
        let page = self.operations().records(&filter, after, limit).await.map_err(status)?;
        let tasks = page.tasks.into_iter().map(|task| self.operations().redacted(task).into());
        let next = page.next.map(|id| id.to_string()).unwrap_or_default();
        Ok(Response::new(v1::ListTasksResponse { tasks: tasks.collect(), next }))
    }

    async fn wait_tasks(&self, request: Request<v1::WaitTasksRequest>) -> Answer<v1::WaitTasksResponse> {
        let request = request.into_inner();
        let ids = ids(&request.task_ids, WAIT_IDS_MAX)?;
        let wait = Duration::from_millis(request.timeout_ms.min(WAIT_MAX_MS));
        let _place = self.server.long_poll().map_err(status)?;
        let ended = tokio::select! {
            ended = self.operations().ended(ids, wait) => ended.map_err(status)?,
            () = self.server.closed() => Vec::new(),
        };
        let mut answer = v1::WaitTasksResponse::default();
        for (id, task) in ended {
            match task {
                Some(task) => answer.ended.push(self.operations().redacted(task).into()),
                None => answer.missing.push(id.to_string()),
            }
        }
        Ok(Response::new(answer))
    }

    async fn cancel_tasks(&self, request: Request<v1::CancelTasksRequest>) -> Answer<v1::ChangedTasks> {
        Subject::tell(&request, |cancel| Subject::ids(cancel.task_ids.iter().map(String::as_str)));
        let request = request.into_inner();
        let ids = ids(&request.task_ids, BULK_LIMIT_MAX as usize)?;
        let reason = self.operations().reason(Some(&request.reason));
        let changed = self.store().cancel(&ids, &reason).await.map_err(status)?;
        Ok(Response::new(v1::ChangedTasks { tasks: changed.into_iter().map(Into::into).collect() }))
    }

    async fn retry_tasks(&self, request: Request<v1::RetryTasksRequest>) -> Answer<v1::ChangedTasks> {
        Subject::tell(&request, |retry| Subject::ids(retry.tasks.iter().map(|task| task.task_id.as_str())));
        let tasks = request.into_inner().tasks;
        within(tasks.len(), BULK_LIMIT_MAX as usize)?;
        let redrive = |task: v1::RetryTask| {
            let delay = Duration::from_millis(task.delay_ms);
            task_id(&task.task_id).map(|id| Redrive { id, delay })
        };
        let tasks: Vec<_> = tasks.into_iter().map(redrive).collect::<Result<_, _>>().map_err(status)?;
        let changed = self.store().redrive(&tasks).await.map_err(status)?;
        Ok(Response::new(v1::ChangedTasks { tasks: changed.into_iter().map(Into::into).collect() }))
    }

    async fn repeat_task(&self, request: Request<v1::RepeatTaskRequest>) -> Answer<v1::RepeatTaskResponse> {
        Subject::tell(&request, |repeat| Subject::ids([repeat.task_id.as_str()].into_iter()));
        let v1::RepeatTaskRequest { task_id: id, delay_ms } = request.into_inner();
        let id = task_id(&id).map_err(status)?;
        let delay = duration("delay_ms", delay_ms).map_err(status)?;
        let added = self.operations().repeat_ended(id, delay).await.map_err(status)?;
        let state = v1::TaskState::from(added.state) as i32;
        Ok(Response::new(v1::RepeatTaskResponse { task_id: added.id.to_string(), state }))
    }

    async fn remove_tasks(&self, request: Request<v1::RemoveTasksRequest>) -> Answer<v1::ChangedTasks> {
        Subject::tell(&request, |remove| Subject::ids(remove.task_ids.iter().map(String::as_str)));
        let ids = ids(&request.into_inner().task_ids, BULK_LIMIT_MAX as usize)?;
        let changed = self.store().remove(&ids).await.map_err(status)?;
        Ok(Response::new(v1::ChangedTasks { tasks: changed.into_iter().map(Into::into).collect() }))
    }

    async fn find_key(&self, request: Request<v1::FindKeyRequest>) -> Answer<v1::FindKeyResponse> {
        let request = request.into_inner();
        let queue = Name::new("queue", &request.queue).map_err(status)?;
        // Some stores cannot even ask for a text with a NUL.
        Filter { key: Some(request.key.clone()), ..Filter::default() }.check().map_err(status)?;
        let found = self.store().key_holder(&queue, &request.key).await.map_err(status)?;
        Ok(Response::new(v1::FindKeyResponse { task_id: found.map(|id| id.to_string()).unwrap_or_default() }))
    }
}

/// The ids of a request, at most `max`.
fn ids(texts: &[String], max: usize) -> Result<Vec<TaskId>, tonic::Status> {
    within(texts.len(), max)?;
    texts.iter().map(|text| task_id(text)).collect::<Result<_, _>>().map_err(status)
}

fn within(len: usize, max: usize) -> Result<(), tonic::Status> {
    if len > max {
        return Err(status(ErrorDetail::invalid(format!("{len} tasks are named; at most {max} at once"))));
    }
    Ok(())
}
