//! What workers do, call by call.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};
use windlass_core::{
    ClaimAnswer, Demand, Error, Hint, LeaseRef, Name, NewWorker, Outcome, State, Timestamp, WorkerId,
    WorkerReport,
};
use windlass_proto::{
    convert::{checked_payload, ms, names, report, required, task_id},
    v1::{self, workers_server::Workers},
};

use super::{Answer, Api, hub::downstream::Downstream, speaker::Speaker, status, work};
use crate::access::Subject;

/// Longest wait of a claim for the first task.
const CLAIM_WAIT_MAX: Duration = Duration::from_secs(30);
/// A waiting claim asks the store at least this often, in case a hint is lost.
const CLAIM_POLL: Duration = Duration::from_secs(1);
/// Most tasks of one claim.
const CLAIM_MAX: u32 = 1_000;

/// Claim numbers that are reserved for a stream before the next stream of the same millisecond.
const CLAIMS_OF_A_MOMENT: u64 = 1 << 10;

/// A claim number for callers that send none; a stream numbers its claims from there. It comes from the
/// store's clock, which all servers share, so it rises from one server to another too. It also rises over a
/// restart, unless the clock is set back by more time than the server was down.
pub(super) fn next_claim_no(now: Timestamp) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(now.as_ms()).unwrap_or(0).saturating_mul(1_000);
    let next = |last: u64| now.max(last + CLAIMS_OF_A_MOMENT);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    // The update always succeeds, so both arms hold the previous number.
    next(last.unwrap_or_else(|last| last))
}

impl Api {
    async fn claim_now(&self, wish: &Wish) -> windlass_core::Result<ClaimAnswer> {
        let lanes = self.store().lanes(&wish.kinds, &wish.queues).await?;
        let lanes = lanes.iter().map(|lane| lane.id).collect();
        let claim_no = next_claim_no(self.ends.now(self.store()).await?);
        self.store().claim(&[Demand::new(wish.worker, claim_no, lanes, wish.n)]).await
    }

    async fn end(
        &self,
        speaker: &Speaker,
        lease: Option<v1::Lease>,
        outcome: Outcome,
    ) -> Answer<v1::SettledTask> {
        let lease = required("lease", lease).map_err(status)?;
        let worker = speaker.worker(&lease.worker_id).await?;
        let state = self.ends.end(self.store(), worker, &lease, outcome).await.map_err(status)?;
        Ok(Response::new(v1::SettledTask { state: v1::TaskState::from(state).into() }))
    }
}

/// What a caller wants to claim.
struct Wish {
    worker: WorkerId,
    kinds: Vec<Name>,
    queues: Vec<Name>,
    n: u32,
}

impl Wish {
    async fn of(speaker: &Speaker, request: &v1::ClaimRequest) -> Result<Self, Status> {
        if request.kinds.is_empty() {
            return Err(status(Error::invalid("kinds must name the kinds that the worker handles")));
        }
        let kinds = names("kind", &request.kinds).map_err(status)?;
        let queues = names("queue", &request.queues).map_err(status)?;
        let worker = speaker.worker(&request.worker_id).await?;
        let (kinds, queues) = speaker.within(kinds, queues)?;
        Ok(Self { worker, kinds, queues, n: request.max_tasks.clamp(1, CLAIM_MAX) })
    }
}

#[async_trait::async_trait]
impl Workers for Api {
    async fn register(&self, request: Request<v1::RegisterRequest>) -> Answer<v1::RegisterResponse> {
        let speaker = self.speaker(&request)?;
        let worker = NewWorker::try_from(request.into_inner()).map_err(status)?;
        let lease_ttl_ms = ms(worker.lease_ttl);
        let id = speaker.register(worker).await?;
        Ok(Response::new(v1::RegisterResponse { worker_id: id.to_string(), lease_ttl_ms }))
    }

    async fn heartbeat(&self, request: Request<v1::HeartbeatRequest>) -> Answer<v1::HeartbeatResponse> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let worker = speaker.worker(&request.worker_id).await?;
        let renewed = self.store().renew(worker, report(&request)).await.map_err(status)?;
        Ok(Response::new(renewed.into()))
    }

    async fn task_heartbeat(
        &self,
        request: Request<v1::TaskHeartbeatRequest>,
    ) -> Answer<v1::TaskHeartbeatResponse> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let worker = speaker.worker(&request.worker_id).await?;
        let id = task_id(&request.task_id).map_err(status)?;
        let busy = WorkerReport { in_flight: 1, ..WorkerReport::default() };
        self.store().renew(worker, busy).await.map_err(status)?;
        let task = self.store().task(id).await.map_err(status)?;
        let held = task.filter(|task| {
            task.state == State::Running && task.lease == request.lease && task.worker == Some(worker)
        });
        let held = held.ok_or_else(|| status(Error::LeaseLost(id)))?;
        Ok(Response::new(v1::TaskHeartbeatResponse { cancel_requested: held.cancel_requested }))
    }

    async fn retire(&self, request: Request<v1::RetireRequest>) -> Answer<v1::Moved> {
        let worker = self.speaker(&request)?.worker(&request.get_ref().worker_id).await?;
        Ok(Response::new(v1::Moved { tasks: self.store().retire(worker).await.map_err(status)? }))
    }

    async fn claim(&self, request: Request<v1::ClaimRequest>) -> Answer<v1::ClaimResponse> {
        let wish = Wish::of(&self.speaker(&request)?, request.get_ref()).await?;
        let request = request.into_inner();
        let until = Instant::now() + Duration::from_millis(request.wait_ms).min(CLAIM_WAIT_MAX);
        let _place = if request.wait_ms > 0 { Some(self.server.long_poll().map_err(status)?) } else { None };
        // Listen before the first look: a hint that arrives in between is not lost.
        let mut hints = self.store().hints();
        loop {
            let answer = self.claim_now(&wish).await.map_err(status)?;
            if !answer.tasks.is_empty() || Instant::now() >= until {
                let tasks = answer.tasks.into_iter().map(Into::into).collect();
                return Ok(Response::new(v1::ClaimResponse { tasks }));
            }
            let look = until.min(Instant::now() + CLAIM_POLL);
            let woken = async { while !matches!(hints.next().await, Hint::Ready | Hint::Lanes) {} };
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep_until(look) => {}
                () = self.server.closed() => return Ok(Response::new(v1::ClaimResponse::default())),
            }
        }
    }

    async fn complete(&self, request: Request<v1::CompleteRequest>) -> Answer<v1::SettledTask> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let output = request.output.map(|output| checked_payload(Some(output))).transpose();
        self.end(&speaker, request.lease, Outcome::Done(output.map_err(status)?)).await
    }

    async fn fail(&self, request: Request<v1::FailRequest>) -> Answer<v1::SettledTask> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let outcome = if request.fatal {
            Outcome::Dead(request.error)
        } else {
            let after = request.retry_after_ms.map(Duration::from_millis);
            Outcome::Retry { error: request.error, after }
        };
        self.end(&speaker, request.lease, outcome).await
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Answer<v1::SettledTask> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let outcome = match request.delay_ms {
            None => Outcome::Release,
            Some(delay) => Outcome::Snooze(Duration::from_millis(delay)),
        };
        self.end(&speaker, request.lease, outcome).await
    }

    async fn progress(&self, request: Request<v1::ProgressRequest>) -> Answer<v1::ProgressResponse> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let worker = speaker.worker(&request.worker_id).await?;
        let lease = LeaseRef { id: task_id(&request.task_id).map_err(status)?, lease: request.lease };
        self.store().progress(worker, lease, request.progress).await.map_err(status)?;
        Ok(Response::new(v1::ProgressResponse {}))
    }

    async fn reconcile(&self, request: Request<v1::ReconcileRequest>) -> Answer<v1::ReconcileResponse> {
        let speaker = self.speaker(&request)?;
        let request = request.into_inner();
        let worker = speaker.worker(&request.worker_id).await?;
        let up_to = if request.up_to_claim_no == 0 { i64::MAX as u64 } else { request.up_to_claim_no };
        let up_to = up_to.min(i64::MAX as u64);
        let held = request.in_flight.into_iter().map(TryInto::try_into);
        let held: Vec<_> = held.collect::<Result<_, Error>>().map_err(status)?;
        let reconciled = self.store().reconcile(worker, up_to, &held).await.map_err(status)?;
        Ok(Response::new(reconciled.into()))
    }

    type WorkStream = Downstream;

    async fn work(&self, request: Request<Streaming<v1::WorkUp>>) -> Answer<Self::WorkStream> {
        let speaker = self.speaker(&request)?;
        Ok(Response::new(work::open(self.clone(), speaker, request.into_inner()).await?))
    }

    async fn list_workers(&self, _: Request<v1::ListWorkersRequest>) -> Answer<v1::ListWorkersResponse> {
        let workers = self.store().workers().await.map_err(status)?;
        Ok(Response::new(v1::ListWorkersResponse { workers: workers.into_iter().map(Into::into).collect() }))
    }

    async fn set_worker(&self, request: Request<v1::SetWorkerRequest>) -> Answer<v1::SetWorkerResponse> {
        Subject::tell(&request, |set| set.worker_id.clone());
        let worker = self.speaker(&request)?.worker(&request.get_ref().worker_id).await?;
        let request = request.into_inner();
        self.store().set_worker_slots(worker, request.max_capacity).await.map_err(status)?;
        Ok(Response::new(v1::SetWorkerResponse {}))
    }
}
