//! What Windlass' own runtime needs beyond the public calls, so that a store over gRPC is a complete store.

use std::{pin::Pin, sync::Arc};

use tonic::{
    Request, Response, Status,
    codegen::tokio_stream::{Stream, wrappers::ReceiverStream},
};
use windlass::{inside::fire, schedule::Spec};
use windlass_core::{
    Enqueued, Error, Hint, Name, ScheduleRow, SettleBatch, TaskRecord, Timestamp, store::Retention,
};
use windlass_proto::{
    convert::{names, required},
    v1::{self, Duty, store_server::Store},
};

use super::{Answer, Api, speaker::check_claim_no, status, work::settle_with_preference};
use crate::access::{Caller, Subject};

/// Most tasks that one step of a duty may change.
const DUTY_MAX: u32 = 10_000;
/// Most hints that wait for one listener; the store merges further ones.
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
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let kinds = names("kind", &request.kinds).map_err(status)?;
        let queues = names("queue", &request.queues).map_err(status)?;
        let (kinds, queues) = speaker.within(kinds, queues)?;
        let lanes = self.store().lanes(&kinds, &queues).await.map_err(status)?;
        Ok(Response::new(v1::ListLanesResponse {
            lanes: lanes.iter().map(|lane| (&**lane).into()).collect(),
        }))
    }

    async fn claim_for(&self, request: Request<v1::ClaimForRequest>) -> Answer<v1::ClaimForResponse> {
        let speaker = self.speaker(&request)?;
        let wanted = request.into_inner().demands.into_iter().map(TryInto::try_into);
        let wanted: Vec<_> = wanted.collect::<Result<_, Error>>().map_err(status)?;
        let mut demands = Vec::with_capacity(wanted.len());
        for demand in wanted {
            demands.push(speaker.demand(demand).await?);
        }
        Ok(Response::new(self.store().claim(&demands).await.map_err(status)?.into()))
    }

    async fn unclaim(&self, request: Request<v1::UnclaimRequest>) -> Answer<v1::Moved> {
        let worker = self.speaker(&request)?.worker(&request.get_ref().worker_id).await?;
        let claim_no = check_claim_no(request.get_ref().claim_no).map_err(status)?;
        let tasks = self.store().unclaim(worker, claim_no).await.map_err(status)?;
        Ok(Response::new(v1::Moved { tasks }))
    }

    async fn settle(&self, request: Request<v1::SettleBatch>) -> Answer<v1::Settled> {
        let speaker = self.speaker(&request)?;
        let batch = SettleBatch::try_from(request.into_inner()).map_err(status)?;
        speaker.speaks_for(batch.worker).await?;
        let settled = settle_with_preference(&self.hub, &**self.store(), batch).await;
        Ok(Response::new(settled.map_err(status)?.into()))
    }

    async fn do_duty(&self, request: Request<v1::DutyRequest>) -> Answer<v1::DutyReport> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let (store, limit) = (self.store(), request.limit.clamp(1, DUTY_MAX));
        let report = match request.duty() {
            Duty::Admit => store.admit(limit).await,
            Duty::PromoteDue => store.promote_due(limit).await,
            Duty::ExpireWorkers => store.expire_workers(limit).await,
            Duty::Retain => {
                // The server decides how long tasks are kept. A caller may set it only with the right to
                // remove tasks.
                let told = request.retention.filter(|_| speaker.caller.is_admin()).map(Retention::from);
                store.retain(&told.unwrap_or(self.server.options.retention)).await
            }
            Duty::Unspecified => Err(Error::invalid("duty must be named")),
        };
        Ok(Response::new(report.map_err(status)?.into()))
    }

    type WatchHintsStream = Pin<Box<dyn Stream<Item = Result<v1::Hint, Status>> + Send>>;

    async fn watch_hints(&self, request: Request<v1::WatchHintsRequest>) -> Answer<Self::WatchHintsStream> {
        // A cancellation contains a task's id and a reason, so a bound worker may not see those of others. It
        // receives its own by its stream or its heartbeats.
        let is_bound = self.speaker(&request)?.is_bound();
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
                if is_bound && matches!(hint, Hint::Cancel(..)) {
                    continue;
                }
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
        let row = ScheduleRow::try_from(request.into_inner()).map_err(status)?;
        row.name.check("schedule").map_err(status)?;
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
        let speaker = self.speaker(&request)?;
        let limit = request.into_inner().limit.min(DUTY_MAX);
        let mut due = self.store().schedules().due(limit).await.map_err(status)?;
        due.due.retain(|row| may_fire(&speaker.caller, row));
        Ok(Response::new(due.into()))
    }

    /// The caller sends only a schedule and its tick. The server reads from its own row what the tick
    /// enqueues and when the next one is; it ignores the fields in which older callers send that.
    async fn fire_schedule(
        &self,
        request: Request<v1::FireScheduleRequest>,
    ) -> Answer<v1::FireScheduleResponse> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let name = Name::new("schedule", request.name).map_err(status)?;
        let fired = self.fire(&speaker.caller, &name, Timestamp::from_ms(request.tick_ms)).await;
        Ok(Response::new(match fired.map_err(status)? {
            Some(task) => v1::FireScheduleResponse {
                fired: true,
                task_id: task.id.to_string(),
                existing: task.existing,
            },
            None => v1::FireScheduleResponse::default(),
        }))
    }
}

impl Api {
    /// Fires a tick that is due by the store's clock; `None` if it is not due, or another caller was first.
    async fn fire(&self, caller: &Caller, name: &Name, tick: Timestamp) -> Result<Option<Enqueued>, Error> {
        let schedules = self.store().schedules();
        let Some(row) = schedules.find(name).await?.filter(|row| may_fire(caller, row)) else {
            return Ok(None);
        };
        let now = schedules.due(1).await?.now;
        if row.paused || row.next_at != Some(tick) || tick > now {
            return Ok(None);
        }
        let ticked = fire(schedules, &row, now).await?;
        if let Some(problem) = &ticked.problem {
            tracing::error!(schedule = %name, problem, "a schedule cannot be fired; set it again or remove it");
        }
        Ok(ticked.task)
    }
}

/// Whether a caller may fire a schedule. With a bound token it may, if the token's queues and kinds include
/// the schedule's task.
fn may_fire(caller: &Caller, row: &ScheduleRow) -> bool {
    let bound = caller.bound();
    if bound.is_open() {
        return true;
    }
    let spec = Spec::from_stored(&row.spec);
    spec.is_ok_and(|spec| bound.has_queue(&spec.task.queue) && bound.has_kind(&spec.task.kind))
}
