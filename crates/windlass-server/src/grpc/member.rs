//! A worker on a stream, as the hub sees it.

use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::Status;
use windlass_core::{Claimed, LaneId, Name, NewTask, WorkerId};
use windlass_proto::v1::work_down::Message;

use super::shares::{BATCH_MIN, Want};

/// Messages on their way to one worker; a stream that has so many unread gets no task.
pub(super) const DOWN_MAX: usize = 64;

/// What goes down a stream: a message, or the tasks of one claim.
pub(super) enum Down {
    Message(Box<Message>),
    Tasks(Vec<Claimed>),
    Refused(Status),
}

/// A worker on a stream.
pub(super) struct Member {
    pub(super) worker: WorkerId,
    pub(super) kinds: Vec<Name>,
    pub(super) queues: Vec<Name>,
    pub(super) lanes: Arc<[LaneId]>,
    /// The number of its last claim.
    pub(super) claim_no: u64,
    pub(super) down: mpsc::Sender<Down>,
    /// Tasks that may have been sent in all, and those that were.
    pub(super) credit: u64,
    pub(super) sent: u64,
    /// Most tasks of its next claim.
    pub(super) batch: u32,
}

impl Member {
    pub(super) fn new(
        worker: WorkerId,
        (kinds, queues): (Vec<Name>, Vec<Name>),
        lanes: Arc<[LaneId]>,
        claim_no: u64,
        down: mpsc::Sender<Down>,
    ) -> Self {
        Self { worker, kinds, queues, lanes, claim_no, down, credit: 0, sent: 0, batch: BATCH_MIN }
    }

    /// Whether it waits for such a task.
    pub(super) fn takes(&self, task: &NewTask) -> bool {
        self.credit > self.sent
            && self.is_read()
            && self.kinds.contains(&task.kind)
            && (self.queues.is_empty() || self.queues.contains(&task.queue))
    }

    fn is_read(&self) -> bool {
        self.down.capacity() > DOWN_MAX / 2
    }

    /// What it could take; at once at least the steps that it is preferred for.
    pub(super) fn want(&self, stream: u64, preferred: u32) -> Want {
        let open = self.credit.saturating_sub(self.sent);
        Want {
            stream,
            lanes: Arc::clone(&self.lanes),
            demand: if self.is_read() { u32::try_from(open).unwrap_or(u32::MAX) } else { 0 },
            batch: self.batch.max(preferred),
        }
    }
}
