//! Hints over a stream that is reopened whenever it breaks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::mpsc::{self, Receiver, Sender, error::TrySendError};
use windlass_core::{Hint, Hints};
use windlass_proto::{convert, v1};

use crate::{channel::Channel, push::Push};

/// Most unread hints of a slow subscriber; a poll finds what a dropped hint announced.
const HINTS_MAX: usize = 64;
/// First and longest pause between attempts to open the stream.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Whether hints arrive now.
#[derive(Debug, Default)]
pub(crate) struct Hearing(AtomicBool);

impl Hearing {
    pub(crate) fn hears(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, hears: bool) {
        self.0.store(hears, Ordering::Release);
    }
}

/// A subscription.
pub(crate) struct RemoteHints(Receiver<Hint>);

impl RemoteHints {
    pub(crate) fn listen(channel: &Arc<Channel>, hearing: &Arc<Hearing>) -> Self {
        let (tell, told) = mpsc::channel(HINTS_MAX);
        let (weak, hearing) = (Arc::downgrade(channel), Arc::clone(hearing));
        channel.handle().spawn(async move {
            let mut pause = PAUSE_MIN;
            while !tell.is_closed() {
                // Without another owner of the channel the store has been dropped.
                let Some(channel) = weak.upgrade() else { return };
                if watch(&channel, &hearing, &tell).await {
                    pause = PAUSE_MIN;
                }
                drop(channel);
                hearing.set(false);
                tokio::select! {
                    () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
                    () = tell.closed() => return,
                }
            }
        });
        Self(told)
    }
}

/// Listens until the stream breaks; returns whether it was open.
async fn watch(channel: &Arc<Channel>, hearing: &Hearing, tell: &Sender<Hint>) -> bool {
    let Ok(wire) = channel.wire().await else { return false };
    let Ok(answer) = wire.store().watch_hints(v1::WatchHintsRequest {}).await else { return false };
    let mut stream = answer.into_inner();
    loop {
        let message = tokio::select! {
            message = stream.message() => message,
            () = tell.closed() => return true,
        };
        let Ok(Some(message)) = message else { return true };
        if let Some(v1::hint::Hint::Listening(listening)) = &message.hint {
            hearing.set(listening.hears_of_new_tasks);
            // Events before this point are unknown, so send both hints.
            let _ = (tell.try_send(Hint::Lanes), tell.try_send(Hint::Ready));
        }
        if let Some(hint) = convert::hint(message)
            && let Err(TrySendError::Closed(_)) = tell.try_send(hint)
        {
            return true;
        }
    }
}

#[async_trait]
impl Hints for RemoteHints {
    async fn next(&mut self) -> Hint {
        match self.0.recv().await {
            Some(hint) => hint,
            // The store has been dropped, so no hint can come.
            None => std::future::pending().await,
        }
    }
}

/// Hints of the pushing stream, and of the server. An open stream itself announces new tasks.
pub(crate) struct PushHints {
    push: Arc<Push>,
    pushed: Receiver<Hint>,
    others: RemoteHints,
}

impl PushHints {
    pub(crate) fn new(push: &Arc<Push>, others: RemoteHints) -> Self {
        Self { push: Arc::clone(push), pushed: push.listen(), others }
    }
}

#[async_trait]
impl Hints for PushHints {
    async fn next(&mut self) -> Hint {
        loop {
            tokio::select! {
                Some(hint) = self.pushed.recv() => return hint,
                hint = self.others.next() => {
                    if hint != Hint::Ready || !self.push.is_open() {
                        return hint;
                    }
                }
            }
        }
    }
}
