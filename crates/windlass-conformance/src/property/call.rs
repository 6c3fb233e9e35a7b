//! A call to one side, and the answer of each side.

use std::sync::Arc;

use windlass_core::{
    ClaimAnswer, Demand, Enqueued, Error, JobChange, JobRecord, LeaseRef, Name, NewTask, NewWorker,
    SettleBatch, Settled, State, Store, TaskId, WorkerId, WorkerReport, WorkflowAction,
    source::{DutyReport, Reconciled, Renewed},
    store::{Changed, Redrive, Retention},
};

use super::{book::CANCELLED, ops};
use crate::{
    claims::claim_out,
    model::{Model, Now},
};

/// A call to one side.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is named after the method of a store")]
pub enum Call {
    Nothing,
    Register(NewWorker),
    Enqueue(Vec<NewTask>),
    Claim(Vec<Demand>),
    Settle(Arc<SettleBatch>),
    Unclaim(WorkerId, u64),
    Reconcile(WorkerId, u64, Vec<LeaseRef>),
    Progress(WorkerId, LeaseRef, String),
    Cancel(Vec<TaskId>),
    Redrive(Vec<Redrive>),
    Remove(Vec<TaskId>),
    Renew(WorkerId, WorkerReport),
    Retire(WorkerId),
    Promote,
    Expire,
    Pause(Name, bool),
    Retain(Retention),
    SetJob(Name, JobChange),
    RemoveJob(Name, bool),
    ChangeWorkflow(Name, WorkflowAction),
    Admit,
}

/// The answer of one side. Errors are compared by their codes, because each store has its own texts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after what it brings")]
pub enum Answer {
    Nothing,
    Registered(WorkerId),
    Enqueued(Vec<Enqueued>),
    Claimed(ClaimAnswer),
    Settled(Settled),
    Count(u64),
    Changed(Vec<(TaskId, Result<State, &'static str>)>),
    Renewed(Renewed),
    Reconciled(Reconciled),
    Duty(DutyReport),
    Flag(bool),
    Job(JobRecord),
    Refused(&'static str),
}

impl Call {
    /// Makes the call on a store.
    pub async fn on_store(self, store: &dyn Store) -> Answer {
        match self {
            Self::Nothing => Answer::Nothing,
            Self::Register(worker) => answer(store.register(worker).await, Answer::Registered),
            Self::Enqueue(tasks) => answer(store.enqueue(tasks).await, Answer::Enqueued),
            Self::Claim(demands) => answer(claim_out(store, &demands).await, Answer::Claimed),
            Self::Settle(batch) => answer(store.settle(batch).await, Answer::Settled),
            Self::Unclaim(worker, claim_no) => answer(store.unclaim(worker, claim_no).await, Answer::Count),
            Self::Reconcile(worker, up_to, in_flight) => {
                answer(store.reconcile(worker, up_to, &in_flight).await, Answer::Reconciled)
            }
            Self::Progress(worker, lease, text) => {
                answer(store.progress(worker, lease, text).await, |()| Answer::Nothing)
            }
            Self::Cancel(ids) => answer(store.cancel(&ids, CANCELLED).await, changed),
            Self::Redrive(tasks) => answer(store.redrive(&tasks).await, changed),
            Self::Remove(ids) => answer(store.remove(&ids).await, changed),
            Self::Renew(worker, report) => answer(store.renew(worker, report).await, Answer::Renewed),
            Self::Retire(worker) => answer(store.retire(worker).await, Answer::Count),
            Self::Promote => answer(store.promote_due(ops::MANY).await, Answer::Duty),
            Self::Expire => answer(store.expire_workers(ops::MANY).await, Answer::Duty),
            Self::Pause(queue, paused) => answer(store.set_queue_paused(&queue, paused).await, Answer::Flag),
            Self::Retain(retention) => retain(store, &retention).await,
            Self::SetJob(name, change) => answer(store.gates().set_job(&name, &change).await, Answer::Job),
            Self::RemoveJob(name, now) => answer(store.gates().remove_job(&name, now).await, Answer::Count),
            Self::ChangeWorkflow(name, action) => {
                answer(store.gates().change_workflow(&name, action).await, |_| Answer::Nothing)
            }
            Self::Admit => answer(store.admit(ops::MANY).await, |_| Answer::Nothing),
        }
    }

    /// Makes the call on the model. A claim takes what the store took, where the rules leave the order open.
    pub fn on_model(self, model: &mut Model, now: Now, taken: &[TaskId]) -> Answer {
        match self {
            Self::Nothing => Answer::Nothing,
            Self::Register(worker) => Answer::Registered(model.register(now, worker, None)),
            Self::Enqueue(tasks) => answer(model.enqueue(now, &tasks), Answer::Enqueued),
            Self::Claim(demands) => answer(model.claim_like(now, &demands, taken), Answer::Claimed),
            Self::Settle(batch) => answer(model.settle(now, &batch), Answer::Settled),
            Self::Unclaim(worker, claim_no) => answer(model.unclaim(now, worker, claim_no), Answer::Count),
            Self::Reconcile(worker, up_to, in_flight) => {
                answer(model.reconcile(now, worker, up_to, &in_flight), Answer::Reconciled)
            }
            Self::Progress(worker, lease, text) => {
                answer(model.progress(worker, lease, &text), |()| Answer::Nothing)
            }
            Self::Cancel(ids) => changed(model.cancel(now, &ids, CANCELLED)),
            Self::Redrive(tasks) => changed(model.redrive(now, &tasks)),
            Self::Remove(ids) => changed(model.remove_dead(&ids)),
            Self::Renew(worker, report) => answer(model.renew(now, worker, report), Answer::Renewed),
            Self::Retire(worker) => answer(model.retire(now, worker), Answer::Count),
            Self::Promote => Answer::Duty(model.promote_due(now, ops::MANY)),
            Self::Expire => Answer::Duty(model.expire_workers(now, ops::MANY)),
            Self::Pause(queue, paused) => Answer::Flag(model.set_queue_paused(now, &queue, paused)),
            Self::Retain(retention) => Answer::Count(model.retain(now, &retention).moved),
            Self::SetJob(name, change) => answer(model.set_job(now, &name, &change), Answer::Job),
            Self::RemoveJob(name, ask) => answer(model.remove_job(now, &name, ask), Answer::Count),
            Self::ChangeWorkflow(name, action) => {
                answer(model.change_workflow(now, &name, action), |_| Answer::Nothing)
            }
            Self::Admit => {
                model.admit(now, ops::MANY);
                Answer::Nothing
            }
        }
    }
}

/// Runs retention until the store says that there is no more.
async fn retain(store: &dyn Store, retention: &Retention) -> Answer {
    let mut moved = 0;
    loop {
        match store.retain(retention).await {
            Ok(report) => {
                moved += report.moved;
                if !report.more {
                    return Answer::Count(moved);
                }
            }
            Err(error) => return Answer::Refused(error.code()),
        }
    }
}

fn answer<T>(result: Result<T, Error>, bring: impl FnOnce(T) -> Answer) -> Answer {
    result.map_or_else(|error| Answer::Refused(error.code()), bring)
}

fn changed(changed: Vec<Changed>) -> Answer {
    let code = |one: Changed| (one.id, one.result.map_err(|error| error.code()));
    Answer::Changed(changed.into_iter().map(code).collect())
}
