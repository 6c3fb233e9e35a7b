//! The stream of one worker. First the worker names itself and the tasks that it still holds. Then it sends
//! demand, ends and heartbeats; the server sends tasks and cancellations.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinSet};
use tonic::{Status, Streaming};
use windlass_core::{
    Error, LeaseRef, NewWorker, Outcome, Result, SettleBatch, Store, WorkerId, source::Reconciled,
};
use windlass_proto::{
    convert::{checked_payload, message_of, ms, report, required, some_name, task_id},
    v1::{self, work_down::Message, work_up},
};

use super::{
    Api,
    hub::{
        Hub, Seat,
        downstream::Downstream,
        member::{DOWN_MAX, Down, Member},
    },
    speaker::{Speaker, check_claim_no},
    status,
    workers::next_claim_no,
};

/// How long a worker may take to send its first message.
const HELLO_MAX: Duration = Duration::from_secs(10);
/// Most ends of one stream that are written at the same time; beyond that the server stops reading the
/// stream.
const ENDS_MAX: usize = 64;

/// Opens the stream of a worker.
pub(super) async fn open(
    api: Api,
    speaker: Speaker,
    mut up: Streaming<v1::WorkUp>,
) -> Result<Downstream, Status> {
    let first = tokio::time::timeout(HELLO_MAX, up.message())
        .await
        .map_err(|_| status(Error::invalid("the stream did not start with hello in time")))??;
    let Some(work_up::Message::Hello(hello)) = first.and_then(|first| first.message) else {
        return Err(status(Error::invalid("the first message of a stream must be hello")));
    };
    let (down, told) = mpsc::channel(DOWN_MAX);
    let (member, welcome) = greet(&api, &speaker, hello, down.clone()).await?;
    let worker = member.worker;
    // This cannot fail: the channel is empty.
    let _ = down.try_send(Down::Message(Box::new(Message::Welcome(welcome))));
    let seat = api.hub.join(member);
    let (stream, reader) = Downstream::new(told);
    tokio::spawn(async move {
        tokio::select! {
            () = listen(&api, worker, &seat, &mut up, &down) => {}
            () = down.closed() => {}
            () = reader.stalled(api.server.options.write_stall_max) => {
                tracing::info!(%worker, "a worker does not read its stream; the stream is over");
            }
            () = api.server.closed() => {}
        }
    });
    Ok(stream)
}

/// Registers or recognises the worker. The store hands back the tasks that the worker does not hold any more,
/// and the worker gets the list of those that it has lost.
async fn greet(
    api: &Api,
    speaker: &Speaker,
    hello: v1::Hello,
    down: mpsc::Sender<Down>,
) -> Result<(Member, v1::Welcome), Status> {
    let introduced = required("register", hello.register).and_then(NewWorker::try_from).map_err(status)?;
    if introduced.kinds.is_empty() {
        return Err(status(Error::invalid("kinds must name the kinds that the worker handles")));
    }
    let (kinds, queues) = speaker.within(introduced.kinds.clone(), introduced.queues.clone())?;
    let lease_ttl_ms = ms(introduced.lease_ttl);
    // This number must be above every claim of the worker's earlier streams, here or at another server. Tasks
    // of those claims that the worker does not hold go back; a claim that is still running is undone, under a
    // number that no other claim has.
    let now = api.ends.now(api.store()).await.map_err(status)?;
    let claim_no = check_claim_no(hello.up_to_claim_no).map_err(status)?.max(next_claim_no(now));
    let (worker, compared) = if hello.worker_id.is_empty() {
        (speaker.register(introduced).await?, Reconciled::default())
    } else {
        let worker = speaker.worker(&hello.worker_id).await?;
        let held = hello.in_flight.into_iter().map(TryInto::try_into).collect::<Result<Vec<LeaseRef>>>();
        (worker, come_back(api, worker, claim_no, &held.map_err(status)?).await.map_err(status)?)
    };
    let lanes = api.hub.lanes(&kinds, &queues).await.map_err(status)?;
    let now_ms = api.ends.now(api.store()).await.map_err(status)?.as_ms();
    let mut member = Member::new(worker, (kinds, queues), lanes, claim_no, down);
    member.is_bound = speaker.is_bound();
    let v1::ReconcileResponse { tasks: handed_back, lost } = compared.into();
    Ok((
        member,
        v1::Welcome { worker_id: worker.to_string(), lease_ttl_ms, handed_back, now_ms, claim_no, lost },
    ))
}

/// A worker opens a new stream. Returns the tasks that were handed back and those that the worker has lost.
async fn come_back(api: &Api, worker: WorkerId, claim_no: u64, held: &[LeaseRef]) -> Result<Reconciled> {
    api.hub.dismiss(worker);
    // Another server may still claim for the worker's older stream. A task claimed there after the comparison
    // would stay leased to a worker that never receives it. So first make the store refuse every claim up to
    // this number.
    api.store().unclaim(worker, claim_no).await?;
    api.store().reconcile(worker, claim_no, held).await
}

/// Reads messages until the worker ends the stream.
async fn listen(
    api: &Api,
    worker: WorkerId,
    seat: &Seat,
    up: &mut Streaming<v1::WorkUp>,
    down: &mpsc::Sender<Down>,
) {
    let mut ends = JoinSet::new();
    while let Ok(Some(said)) = up.message().await {
        match said.message {
            Some(work_up::Message::Credit(credit)) => seat.set_credit(credit.tasks),
            Some(work_up::Message::Heartbeat(beat)) => {
                if beat.draining {
                    seat.stop();
                }
                let renewed = api.store().renew(worker, report(&beat)).await;
                let answer = match renewed {
                    Ok(renewed) => v1::HeartbeatAnswer { renewed: Some(renewed.into()), error: None },
                    Err(error) => v1::HeartbeatAnswer { renewed: None, error: Some(message_of(&error)) },
                };
                if down.send(Down::Message(Box::new(Message::Heartbeat(answer)))).await.is_err() {
                    return;
                }
            }
            Some(message) => {
                if ends.len() >= ENDS_MAX {
                    ends.join_next().await;
                }
                while ends.try_join_next().is_some() {}
                let (api, down) = (api.clone(), down.clone());
                ends.spawn(async move {
                    if let Some(answer) = act(&api, worker, message).await {
                        let _ = down.send(Down::Message(Box::new(answer))).await;
                    }
                });
            }
            None => {}
        }
    }
    // Finish the ends that the worker has sent, although its stream is closed.
    while ends.join_next().await.is_some() {}
}

/// Carries out one message of the worker.
async fn act(api: &Api, worker: WorkerId, message: work_up::Message) -> Option<Message> {
    match message {
        work_up::Message::Settle(batch) => Some(Message::Settled(settle(api, worker, batch).await)),
        work_up::Message::Complete(end) => {
            let output = end.output.map(|output| checked_payload(Some(output))).transpose();
            let outcome = output.map(Outcome::Done);
            Some(end_one(api, worker, end.lease, outcome).await)
        }
        work_up::Message::Fail(end) => {
            let after = end.retry_after_ms.map(Duration::from_millis);
            let outcome =
                if end.fatal { Outcome::Dead(end.error) } else { Outcome::Retry { error: end.error, after } };
            Some(end_one(api, worker, end.lease, Ok(outcome)).await)
        }
        work_up::Message::Release(end) => {
            let outcome =
                end.delay_ms.map_or(Outcome::Release, |delay| Outcome::Snooze(Duration::from_millis(delay)));
            Some(end_one(api, worker, end.lease, Ok(outcome)).await)
        }
        work_up::Message::Progress(said) => {
            let id = task_id(&said.task_id).ok()?;
            // A progress text that came too late needs no answer.
            let _ = api.store().progress(worker, LeaseRef { id, lease: said.lease }, said.progress).await;
            None
        }
        work_up::Message::Hello(_) | work_up::Message::Credit(_) | work_up::Message::Heartbeat(_) => None,
    }
}

async fn settle(api: &Api, worker: WorkerId, batch: v1::SettleBatch) -> v1::SettledBatch {
    let (settler_no, batch_no) = (batch.settler_no, batch.batch_no);
    let settled = async {
        // A stream acts for its own worker only.
        let batch = v1::SettleBatch { worker_id: worker.to_string(), ..batch };
        settle_with_preference(&api.hub, &**api.store(), batch.try_into()?).await
    };
    match settled.await {
        Ok(settled) => v1::SettledBatch { settler_no, batch_no, settled: Some(settled.into()), error: None },
        Err(error) => {
            v1::SettledBatch { settler_no, batch_no, settled: None, error: Some(message_of(&error)) }
        }
    }
}

/// Writes a batch. If it ends steps of workflows, the worker is first noted as the preferred one for the next
/// steps.
pub(super) async fn settle_with_preference(
    hub: &Hub,
    store: &dyn Store,
    batch: SettleBatch,
) -> Result<windlass_core::Settled> {
    let batch = batch.from_outside(store.rules())?;
    hub.prefer(batch.worker, batch.items.iter().filter_map(|item| item.gate.workflow.as_ref()));
    store.settle(Arc::new(batch)).await
}

async fn end_one(api: &Api, worker: WorkerId, lease: Option<v1::Lease>, outcome: Result<Outcome>) -> Message {
    let (id, number) = lease.as_ref().map(|l| (l.task_id.clone(), l.lease)).unwrap_or_default();
    let ended = async {
        let lease = required("lease", lease)?;
        let workflow = some_name("workflow", &lease.workflow)?;
        api.hub.prefer(worker, workflow.iter());
        // A stream acts for its own worker only.
        api.ends.end(api.store(), worker, &lease, outcome?).await
    };
    let (state, error) = match ended.await {
        Ok(state) => (v1::TaskState::from(state), None),
        Err(error) => (v1::TaskState::Unspecified, Some(message_of(&error))),
    };
    Message::End(v1::EndAnswer { task_id: id, lease: number, state: state.into(), error })
}
