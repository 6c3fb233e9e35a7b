//! What our own runtime needs beyond the public calls, so that a store over gRPC is a store.

use std::{pin::Pin, sync::Arc};

use tonic::{
    Request, Response, Status,
    codegen::tokio_stream::{Stream, wrappers::ReceiverStream},
};
use windlass_core::{Error, Fire, Name, TaskRecord, store::Retention};
use windlass_proto::{
    convert::{names, required, worker_id},
    v1::{self, Duty, store_server::Store},
};

use super::{Answer, Api, status, work::settle_with_preference};
use crate::access::Subject;

/// Most that one step of a duty may move.
const DUTY_MAX: u32 = 10_000;
/// Hints on their way to one listener; the store coalesces the rest.
const HINTS_MAX: usize = 16;

#[async_trait::async_trait]
impl Store for Api {
    async fn get_rules(&self, _: Request<v1::GetRulesRequest>) -> Answer<v1::Rules> {
        Ok(Response::new(self.store().rules().into()))
    }

    async fn get_info(&self, _: Request<v1::GetInfoRequest>) -> Answer<v1::Info> {
        Ok(Response::new(self.store().info().await.map_err(status)?.into()))
    }

    async fn list_lanes(&self, request: Request<v1::ListLanesRequest>) -> Answer<v1::ListLanesResponse> {
        let request = request.into_inner();
        let kinds = names("kind", &request.kinds).map_err(status)?;
        let queues = names("queue", &request.queues).map_err(status)?;
        let lanes = self.store().lanes(&kinds, &queues).await.map_err(status)?;
        Ok(Response::new(v1::ListLanesResponse {
            lanes: lanes.iter().map(|lane| (&**lane).into()).collect(),
        }))
    }

    async fn claim_for(&self, request: Request<v1::ClaimForRequest>) -> Answer<v1::ClaimForResponse> {
        let demands = request.into_inner().demands.into_iter().map(TryInto::try_into);
        let demands: Vec<_> = demands.collect::<Result<_, Error>>().map_err(status)?;
        Ok(Response::new(self.store().claim(&demands).await.map_err(status)?.into()))
    }

    async fn unclaim(&self, request: Request<v1::UnclaimRequest>) -> Answer<v1::Moved> {
        let request = request.into_inner();
        let worker = worker_id(&request.worker_id).map_err(status)?;
        let tasks = self.store().unclaim(worker, request.claim_no).await.map_err(status)?;
        Ok(Response::new(v1::Moved { tasks }))
    }

    async fn settle(&self, request: Request<v1::SettleBatch>) -> Answer<v1::Settled> {
        let batch = request.into_inner().try_into().map_err(status)?;
        let settled = settle_with_preference(&self.hub, &**self.store(), batch).await;
        Ok(Response::new(settled.map_err(status)?.into()))
    }

    async fn do_duty(&self, request: Request<v1::DutyRequest>) -> Answer<v1::DutyReport> {
        let request = request.into_inner();
        let (store, limit) = (self.store(), request.limit.min(DUTY_MAX));
        let report = match request.duty() {
            Duty::Admit => store.admit(limit).await,
            Duty::PromoteDue => store.promote_due(limit).await,
            Duty::ExpireWorkers => store.expire_workers(limit).await,
            Duty::Retain => match required("retention", request.retention) {
                Ok(retention) => store.retain(&Retention::from(retention)).await,
                Err(error) => Err(error),
            },
            Duty::Unspecified => Err(Error::invalid("duty must be named")),
        };
        Ok(Response::new(report.map_err(status)?.into()))
    }

    type WatchHintsStream = Pin<Box<dyn Stream<Item = Result<v1::Hint, Status>> + Send>>;

    async fn watch_hints(&self, _: Request<v1::WatchHintsRequest>) -> Answer<Self::WatchHintsStream> {
        let mut hints = self.store().hints();
        let server = Arc::clone(&self.server);
        let hears_of_new_tasks = self.store().hears_of_new_tasks();
        let (tell, told) = tokio::sync::mpsc::channel(HINTS_MAX);
        tokio::spawn(async move {
            let listening = v1::hint::Hint::Listening(v1::hint::Listening { hears_of_new_tasks });
            if tell.send(Ok(v1::Hint { hint: Some(listening) })).await.is_err() {
                return;
            }
            loop {
                let hint = tokio::select! {
                    hint = hints.next() => hint,
                    () = tell.closed() => return,
                    () = server.closed() => return,
                };
                if tell.send(Ok(hint.into())).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(told))))
    }

    async fn audit(&self, _: Request<v1::AuditRequest>) -> Answer<v1::AuditResponse> {
        let findings = self.store().audit().await.map_err(status)?;
        Ok(Response::new(v1::AuditResponse { findings: findings.into_iter().map(Into::into).collect() }))
    }

    async fn get_ready_lines(&self, _: Request<v1::GetReadyLinesRequest>) -> Answer<v1::ReadyLines> {
        Ok(Response::new(self.store().ready_lines().await.map_err(status)?.into()))
    }

    async fn view_gates(&self, request: Request<v1::ViewGatesRequest>) -> Answer<v1::GateView> {
        let task = required("task", request.into_inner().task).map_err(status)?;
        let task = TaskRecord::try_from(task).map_err(status)?;
        Ok(Response::new(self.store().gates().view(&task).await.map_err(status)?.into()))
    }

    async fn put_schedule(&self, request: Request<v1::Schedule>) -> Answer<v1::PutScheduleResponse> {
        Subject::tell(&request, |schedule| schedule.name.clone());
        let row = request.into_inner().try_into().map_err(status)?;
        self.store().schedules().put(&row).await.map_err(status)?;
        Ok(Response::new(v1::PutScheduleResponse {}))
    }

    async fn list_schedules(
        &self,
        _: Request<v1::ListSchedulesRequest>,
    ) -> Answer<v1::ListSchedulesResponse> {
        let rows = self.store().schedules().list().await.map_err(status)?;
        Ok(Response::new(v1::ListSchedulesResponse { schedules: rows.into_iter().map(Into::into).collect() }))
    }

    async fn remove_schedule(
        &self,
        request: Request<v1::RemoveScheduleRequest>,
    ) -> Answer<v1::RemoveScheduleResponse> {
        Subject::tell(&request, |remove| remove.name.clone());
        let name = Name::new("schedule", request.into_inner().name).map_err(status)?;
        let removed = self.store().schedules().remove(&name).await.map_err(status)?;
        Ok(Response::new(v1::RemoveScheduleResponse { removed }))
    }

    async fn due_schedules(
        &self,
        request: Request<v1::DueSchedulesRequest>,
    ) -> Answer<v1::DueSchedulesResponse> {
        let limit = request.into_inner().limit.min(DUTY_MAX);
        Ok(Response::new(self.store().schedules().due(limit).await.map_err(status)?.into()))
    }

    async fn fire_schedule(
        &self,
        request: Request<v1::FireScheduleRequest>,
    ) -> Answer<v1::FireScheduleResponse> {
        let fire = Fire::try_from(request.into_inner()).map_err(status)?;
        let fired = self.store().schedules().fire(fire).await.map_err(status)?;
        Ok(Response::new(match fired {
            Some(task) => v1::FireScheduleResponse {
                fired: true,
                task_id: task.id.to_string(),
                existing: task.existing,
            },
            None => v1::FireScheduleResponse::default(),
        }))
    }
}
