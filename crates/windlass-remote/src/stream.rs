//! Keeps the stream of a worker open: to one server, and after its end to the next.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use tonic::{Status, codegen::tokio_stream::wrappers::ReceiverStream};
use windlass_core::{Claimed, Error, Hint, LeaseRef, Result, Timestamp, WorkerId};
use windlass_proto::v1::{self, WorkUp, work_down, work_up};

use crate::{
    call::{Effect, told},
    channel::{Channel, Wire},
    push::Push,
};

/// Most messages that wait for the server.
const UP_MAX: usize = 16;
/// How long a server may take to open a stream.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// First and longest pause between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A stream that was open for so long is reopened without a pause: another server then serves the worker at
/// once.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Why a stream ended.
enum End {
    /// The worker has another registration now, or none.
    Worker,
    /// The server is gone or asks the worker to reconnect.
    Server,
}

/// Starts the loop; it ends when the store is dropped.
pub(crate) fn keep_open(channel: &Arc<Channel>, push: &Arc<Push>) {
    let (weak_channel, weak_push) = (Arc::downgrade(channel), Arc::downgrade(push));
    channel.handle().spawn(run(weak_channel, weak_push));
}

async fn run(channel: Weak<Channel>, push: Weak<Push>) {
    let mut pause = PAUSE_MIN;
    loop {
        let Some((channel, push)) = channel.upgrade().zip(push.upgrade()) else { return };
        if !push.has_clock()
            && let Ok(now) = clock(&channel).await
        {
            push.set_clock(now);
        }
        let Some((worker, hello)) = push.hello() else {
            // Check again after a while whether the store was dropped: the wait itself must not keep it
            // alive.
            let _ = tokio::time::timeout(PAUSE_MAX, push.changed.notified()).await;
            continue;
        };
        let began = Instant::now();
        let end = work(&channel, &push, worker, hello).await;
        let was_good = push.is_open() && began.elapsed() >= GOOD_FOR;
        push.closed();
        if was_good || matches!(end, Ok(End::Worker)) {
            pause = PAUSE_MIN;
        }
        match end {
            Ok(End::Worker) => continue,
            Ok(End::Server) if was_good => continue,
            Ok(End::Server) => {}
            // Also if the server says that the lease has expired: the heartbeat notices that and registers
            // again.
            Err(error) => tracing::debug!(%error, "no stream of tasks; claiming by calls"),
        }
        drop(push);
        // Stop waiting when another call has reached a server. The limit of the wait ensures that this keeps
        // no store alive.
        channel.connected_within(pause).await;
        drop(channel);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Reads the store's clock.
async fn clock(channel: &Arc<Channel>) -> Result<Timestamp> {
    let request = v1::DueSchedulesRequest { limit: 1 };
    let call = |wire: Wire| async move { wire.store().due_schedules(request).await };
    Ok(Timestamp::from_ms(channel.call(Effect::Reads, OPEN_MAX, call).await?.now_ms))
}

async fn work(channel: &Arc<Channel>, push: &Push, worker: WorkerId, hello: v1::Hello) -> Result<End> {
    let wire = channel.wire().await?;
    let used = wire.used();
    let give_up = || channel.give_up(used.load(Ordering::Relaxed));
    let (say, said) = mpsc::channel(UP_MAX);
    let up = |message| WorkUp { message: Some(message) };
    // The channel is empty, so this does not wait.
    let _ = say.try_send(up(work_up::Message::Hello(hello)));
    let open = async { wire.workers().work(ReceiverStream::new(said)).await };
    let lost =
        |status: &Status| told(status).unwrap_or_else(|| Error::Unavailable(status.message().to_owned()));
    let mut down = match tokio::time::timeout(OPEN_MAX, open).await {
        Ok(Ok(answer)) => answer.into_inner(),
        Ok(Err(status)) => return Err(lost(&status)),
        Err(_) => {
            give_up();
            return Err(Error::Unavailable("the server did not open a stream in time".to_owned()));
        }
    };
    let mut credit = 0;
    loop {
        let message = tokio::select! {
            message = down.message() => message.map_err(|status| lost(&status))?,
            () = push.changed.notified() => {
                if !push.serves(worker) {
                    return Ok(End::Worker);
                }
                if push.is_open() && push.credit() != credit {
                    credit = push.credit();
                    let stated = up(work_up::Message::Credit(v1::Credit { tasks: credit }));
                    if say.send(stated).await.is_err() {
                        return Ok(End::Server);
                    }
                }
                continue;
            }
        };
        let Some(message) = message.and_then(|message| message.message) else {
            // The server stops or has too many calls: another server may accept the stream.
            give_up();
            return Ok(End::Server);
        };
        match message {
            work_down::Message::Welcome(welcome) => {
                if welcome.handed_back > 0 {
                    tracing::warn!(%worker, tasks = welcome.handed_back, "handed back tasks that never arrived");
                }
                push.opened(Timestamp::from_ms(welcome.now_ms), welcome.claim_no);
                let lost =
                    welcome.lost.into_iter().map(TryInto::try_into).collect::<Result<Vec<LeaseRef>>>()?;
                push.lost(&lost);
                for lease in lost {
                    push.ring(&Hint::Lost(lease));
                }
            }
            work_down::Message::Tasks(tasks) => {
                let tasks = tasks.tasks.into_iter().map(Claimed::try_from).collect::<Result<_>>()?;
                push.received(tasks);
            }
            work_down::Message::Cancel(cancel) => {
                let (lease, reason) = cancel.try_into()?;
                push.ring(&Hint::Cancel(lease, reason));
            }
            work_down::Message::Drain(_) => {
                give_up();
                return Ok(End::Server);
            }
            work_down::Message::Settled(_)
            | work_down::Message::Heartbeat(_)
            | work_down::Message::End(_) => {}
        }
    }
}
