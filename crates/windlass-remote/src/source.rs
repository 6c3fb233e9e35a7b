//! The store's interface for workers, over gRPC.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::{
    ClaimAnswer, Demand, Hints, Lane, LeaseRef, Name, NewWorker, Result, SettleBatch, Settled, Source,
    WorkerId, WorkerReport,
    source::{DutyReport, Loop, Reconciled, Renewed},
};
use windlass_proto::{
    convert::{texts, worker_id},
    v1::{self, Duty},
};

use crate::{
    call::Effect,
    channel::Wire,
    hints::{PushHints, RemoteHints},
    push::{Claim, Push},
    store::RemoteStore,
};

#[async_trait]
impl Source for RemoteStore {
    async fn register(&self, worker: NewWorker) -> Result<WorkerId> {
        self.check_open()?;
        let introduction = self.push.as_ref().map(|_| worker.clone());
        let request = v1::RegisterRequest::from(worker);
        let call = |wire: Wire| async move { wire.workers().register(request).await };
        // A registration whose answer was lost expires on its own; nothing was claimed under it.
        let answer = self.leases.call(Effect::Reads, self.options.call_max, call).await?;
        let id = worker_id(&answer.worker_id)?;
        if let Some((push, introduction)) = self.push.as_ref().zip(introduction) {
            push.registered(id, introduction);
        }
        Ok(id)
    }

    async fn renew(&self, worker: WorkerId, report: WorkerReport) -> Result<Renewed> {
        self.check_open()?;
        let request = v1::HeartbeatRequest { worker_id: worker.to_string(), ..report.into() };
        let call = |wire: Wire| async move { wire.workers().heartbeat(request).await };
        // May be repeated: two renewals have the effect of one.
        self.leases.call(Effect::Reads, self.options.renew_max, call).await?.try_into()
    }

    async fn retire(&self, worker: WorkerId) -> Result<u64> {
        self.check_open()?;
        if let Some(push) = &self.push {
            push.ended(worker);
        }
        let request = v1::RetireRequest { worker_id: worker.to_string() };
        let call = |wire: Wire| async move { wire.workers().retire(request).await };
        Ok(self.leases.call(Effect::Writes, self.options.call_max, call).await?.tasks)
    }

    async fn lanes(&self, kinds: &[Name], queues: &[Name]) -> Result<Vec<Arc<Lane>>> {
        let request = v1::ListLanesRequest { kinds: texts(kinds), queues: texts(queues) };
        let answer = self.look(|wire| async move { wire.store().list_lanes(request).await }).await?;
        answer.lanes.into_iter().map(|lane| Lane::try_from(lane).map(Arc::new)).collect()
    }

    async fn claim(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        let (Some(push), [demand]) = (&self.push, demands) else {
            return self.claim_by_call(demands).await;
        };
        self.check_open()?;
        match push.claim(demand) {
            Claim::Answered(answer) => Ok(answer),
            Claim::Call(claim_no) => {
                let mut call = CallUnderWay { push, answer: None };
                let answer = self.claim_by_call(&[Demand { claim_no, ..demand.clone() }]).await?;
                call.answer = Some(answer.clone());
                Ok(answer)
            }
        }
    }

    async fn unclaim(&self, worker: WorkerId, claim_no: u64) -> Result<u64> {
        let claim_no = match &self.push {
            None => claim_no,
            Some(push) => match push.number_of(claim_no) {
                Some(number) => number,
                // It was answered from the inbox, so no answer was lost.
                None => return Ok(0),
            },
        };
        let request = v1::UnclaimRequest { worker_id: worker.to_string(), claim_no };
        Ok(self.change(|wire| async move { wire.store().unclaim(request).await }).await?.tasks)
    }

    async fn settle(&self, batch: Arc<SettleBatch>) -> Result<Settled> {
        let request = v1::SettleBatch::from(&*batch);
        let settled = self.change(|wire| async move { wire.store().settle(request).await }).await?;
        if let Some(push) = &self.push {
            push.settled(&batch);
        }
        settled.try_into()
    }

    async fn progress(&self, worker: WorkerId, lease: LeaseRef, progress: String) -> Result<()> {
        let request = v1::ProgressRequest {
            worker_id: worker.to_string(),
            task_id: lease.id.to_string(),
            lease: lease.lease,
            progress,
        };
        self.change(|wire| async move { wire.workers().progress(request).await }).await.map(|_| ())
    }

    async fn reconcile(
        &self,
        worker: WorkerId,
        up_to_claim_no: u64,
        in_flight: &[LeaseRef],
    ) -> Result<Reconciled> {
        let (up_to_claim_no, in_flight) = match &self.push {
            None => (up_to_claim_no, in_flight.to_vec()),
            Some(push) => push.holds(in_flight),
        };
        if up_to_claim_no == 0 {
            // In the message zero stands for every claim; a worker without an answered claim has nothing to
            // compare.
            return Ok(Reconciled::default());
        }
        let request = v1::ReconcileRequest {
            worker_id: worker.to_string(),
            up_to_claim_no,
            in_flight: in_flight.into_iter().map(Into::into).collect(),
        };
        let compared = self.change(|wire| async move { wire.workers().reconcile(request).await }).await?;
        let compared = Reconciled::try_from(compared)?;
        if let Some(push) = &self.push {
            push.lost(&compared.lost);
        }
        Ok(compared)
    }

    async fn admit(&self, limit: u32) -> Result<DutyReport> {
        self.duty(Duty::Admit, limit, None).await
    }

    async fn promote_due(&self, limit: u32) -> Result<DutyReport> {
        self.duty(Duty::PromoteDue, limit, None).await
    }

    async fn expire_workers(&self, limit: u32) -> Result<DutyReport> {
        self.duty(Duty::ExpireWorkers, limit, None).await
    }

    fn hints(&self) -> Box<dyn Hints> {
        let hints = RemoteHints::listen(&self.calls, &self.hearing);
        match &self.push {
            None => Box::new(hints),
            Some(push) => Box::new(PushHints::new(push, hints)),
        }
    }

    fn hears_of_new_tasks(&self) -> bool {
        self.hearing.hears() || self.pushes()
    }

    fn pushes(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_open())
    }

    fn run_beside(&self, claims: Loop) -> Option<Loop> {
        self.calls.handle().spawn(claims);
        None
    }
}

impl RemoteStore {
    async fn claim_by_call(&self, demands: &[Demand]) -> Result<ClaimAnswer> {
        let request = v1::ClaimForRequest { demands: demands.iter().map(Into::into).collect() };
        self.change(|wire| async move { wire.store().claim_for(request).await }).await?.try_into()
    }
}

/// A claim by a call. When this is dropped, even without an answer, the claim no longer counts as running.
struct CallUnderWay<'a> {
    push: &'a Push,
    answer: Option<ClaimAnswer>,
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        self.push.called(self.answer.as_ref());
    }
}
