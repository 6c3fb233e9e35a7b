//! A worker with a stream, as the hub sees it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Notify, mpsc};
use tonic::Status;
use windlass_core::{Claimed, LaneId, Name, NewTask, WorkerId};
use windlass_proto::v1::work_down::Message;

use super::shares::{BATCH_MIN, Want};

/// Most messages that wait to be sent to one worker. A stream with half as many unread gets no task.
pub(in crate::grpc) const DOWN_MAX: usize = 64;

/// Most bytes of tasks that wait to be sent to one worker. A stream with more unread gets no task, and no
/// claim is sized to bring more.
const UNREAD_MAX_BYTES: usize = 4 << 20;
/// Fewest bytes that a task counts for: small tasks are bounded by their number.
const TASK_MIN_BYTES: usize = 4 << 10;

/// What is sent to a worker: a message, the tasks of one claim, or a refusal.
pub(in crate::grpc) enum Down {
    Message(Box<Message>),
    Tasks(Parcel),
    Refused(Status),
}

/// Tasks that are sent to one worker and not yet read.
#[derive(Default)]
struct Unread {
    bytes: AtomicUsize,
    /// Notified when there is room again.
    wake: Arc<Notify>,
}

/// The tasks of one claim. They count as unread until this is dropped.
pub(in crate::grpc) struct Parcel {
    tasks: Vec<Claimed>,
    bytes: usize,
    unread: Arc<Unread>,
}

impl Parcel {
    fn new(tasks: Vec<Claimed>, unread: &Arc<Unread>) -> Self {
        let bytes = tasks.iter().map(|task| task.payload.len().max(TASK_MIN_BYTES)).sum();
        unread.bytes.fetch_add(bytes, Ordering::Relaxed);
        Self { tasks, bytes, unread: Arc::clone(unread) }
    }

    pub(in crate::grpc) fn open(mut self) -> Vec<Claimed> {
        std::mem::take(&mut self.tasks)
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let before = self.unread.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        if before >= UNREAD_MAX_BYTES {
            self.unread.wake.notify_one();
        }
    }
}

/// A worker with a stream.
pub(in crate::grpc) struct Member {
    pub(in crate::grpc) worker: WorkerId,
    /// Whether the worker's token is bound to queues or kinds: then it may see only its own tasks.
    pub(in crate::grpc) is_bound: bool,
    pub(in crate::grpc) kinds: Vec<Name>,
    pub(in crate::grpc) queues: Vec<Name>,
    pub(in crate::grpc) lanes: Arc<[LaneId]>,
    /// The number of its last claim.
    pub(in crate::grpc) claim_no: u64,
    pub(in crate::grpc) down: mpsc::Sender<Down>,
    /// How many tasks the stream may bring in all.
    pub(in crate::grpc) credit: u64,
    pub(in crate::grpc) sent: u64,
    /// Most tasks of the worker's next claim.
    pub(in crate::grpc) batch: u32,
    unread: Arc<Unread>,
    /// Average bytes of a task in the worker's last claim.
    task_bytes: usize,
}

impl Member {
    pub(in crate::grpc) fn new(
        worker: WorkerId,
        (kinds, queues): (Vec<Name>, Vec<Name>),
        lanes: Arc<[LaneId]>,
        claim_no: u64,
        down: mpsc::Sender<Down>,
    ) -> Self {
        Self {
            worker,
            is_bound: false,
            kinds,
            queues,
            lanes,
            claim_no,
            down,
            credit: 0,
            sent: 0,
            batch: BATCH_MIN,
            unread: Arc::default(),
            task_bytes: TASK_MIN_BYTES,
        }
    }

    /// Sets what is notified when the worker reads again after a pause.
    pub(in crate::grpc) fn wakes(&mut self, wake: &Arc<Notify>) {
        self.unread = Arc::new(Unread { wake: Arc::clone(wake), ..Unread::default() });
    }

    /// Queues the tasks of a claim. Returns false if there was no place for them.
    pub(in crate::grpc) fn send(&mut self, tasks: Vec<Claimed>) -> bool {
        let n = tasks.len().max(1);
        let parcel = Parcel::new(tasks, &self.unread);
        self.task_bytes = parcel.bytes / n;
        self.down.try_send(Down::Tasks(parcel)).is_ok()
    }

    /// Whether the worker waits for such a task.
    pub(in crate::grpc) fn takes(&self, task: &NewTask) -> bool {
        self.credit > self.sent
            && self.is_read()
            && self.kinds.contains(&task.kind)
            && (self.queues.is_empty() || self.queues.contains(&task.queue))
    }

    fn is_read(&self) -> bool {
        self.down.capacity() > DOWN_MAX / 2 && self.unread.bytes.load(Ordering::Relaxed) < UNREAD_MAX_BYTES
    }

    /// How many tasks the worker can take. Its next claim is large enough for the steps that prefer it.
    pub(in crate::grpc) fn want(&self, stream: u64, preferred: u32) -> Want {
        let open = self.credit.saturating_sub(self.sent);
        Want {
            stream,
            lanes: Arc::clone(&self.lanes),
            demand: if self.is_read() { u32::try_from(open).unwrap_or(u32::MAX) } else { 0 },
            batch: self.batch.max(preferred).min(batch_max(self.task_bytes)),
        }
    }
}

/// Most tasks of a claim if each counts for this many bytes.
fn batch_max(task_bytes: usize) -> u32 {
    u32::try_from(UNREAD_MAX_BYTES / task_bytes.max(TASK_MIN_BYTES)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::batch_max;

    #[test]
    fn a_claim_of_large_payloads_is_small_and_never_empty() {
        assert_eq!(batch_max(1 << 20), 4);
        assert_eq!(batch_max(100 << 20), 1);
        assert_eq!(batch_max(0), 1_024);
    }
}
