//! The ends of attempts.

use windlass_core::{Error, Gate, LaneId, Payload, SettleBatch, SettleItem, Settled, Settlement, Timestamp};

use super::{checked_payload, required, some_name, task_id, text, worker_id};
use crate::v1::{self, settlement::End};

impl From<&SettleItem> for v1::Settlement {
    fn from(item: &SettleItem) -> Self {
        let end = match item.settlement.clone() {
            Settlement::Done { output, note } => End::Done(v1::Done { output: output.map(Into::into), note }),
            Settlement::Retry { due_at, error } => {
                End::Retry(v1::RetryAt { due_at_ms: due_at.as_ms(), error })
            }
            Settlement::Snooze { due_at } => End::Snooze(v1::SnoozeUntil { due_at_ms: due_at.as_ms() }),
            Settlement::Release => End::Release(v1::HandBack {}),
            Settlement::Dead { error } => End::Dead(v1::Dead { error }),
            Settlement::Cancelled { reason } => End::Cancelled(v1::Cancelled { reason }),
        };
        Self {
            held: Some(item.lease.into()),
            job: text(item.gate.job.as_ref()),
            workflow: text(item.gate.workflow.as_ref()),
            end: Some(end),
        }
    }
}

impl TryFrom<v1::Settlement> for SettleItem {
    type Error = Error;

    fn try_from(item: v1::Settlement) -> Result<Self, Error> {
        let settlement = match required("end", item.end)? {
            End::Done(done) => Settlement::Done { output: output(done.output)?, note: done.note },
            End::Retry(retry) => {
                Settlement::Retry { due_at: Timestamp::from_ms(retry.due_at_ms), error: retry.error }
            }
            End::Snooze(snooze) => Settlement::Snooze { due_at: Timestamp::from_ms(snooze.due_at_ms) },
            End::Release(v1::HandBack {}) => Settlement::Release,
            End::Dead(dead) => Settlement::Dead { error: dead.error },
            End::Cancelled(cancelled) => Settlement::Cancelled { reason: cancelled.reason },
        };
        Ok(Self {
            lease: required("held", item.held)?.try_into()?,
            settlement,
            gate: Gate {
                job: some_name("job", &item.job)?,
                workflow: some_name("workflow", &item.workflow)?,
            },
        })
    }
}

/// A caller's output; JSON is checked.
fn output(output: Option<v1::Payload>) -> Result<Option<Payload>, Error> {
    output.map(|output| checked_payload(Some(output))).transpose()
}

impl From<&SettleBatch> for v1::SettleBatch {
    fn from(batch: &SettleBatch) -> Self {
        Self {
            worker_id: batch.worker.to_string(),
            settler_no: batch.settler_no,
            batch_no: batch.batch_no,
            items: batch.items.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::SettleBatch> for SettleBatch {
    type Error = Error;

    fn try_from(batch: v1::SettleBatch) -> Result<Self, Error> {
        Ok(Self {
            worker: worker_id(&batch.worker_id)?,
            settler_no: batch.settler_no,
            batch_no: batch.batch_no,
            items: batch.items.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl From<Settled> for v1::Settled {
    fn from(settled: Settled) -> Self {
        Self {
            fenced: settled.fenced.iter().map(ToString::to_string).collect(),
            lanes_ready: settled.lanes_ready.into_iter().map(|lane| lane.0).collect(),
            next_due_ms: settled.next_due.map(Timestamp::as_ms),
            replayed: settled.replayed,
        }
    }
}

impl TryFrom<v1::Settled> for Settled {
    type Error = Error;

    fn try_from(settled: v1::Settled) -> Result<Self, Error> {
        Ok(Self {
            fenced: settled.fenced.iter().map(|id| task_id(id)).collect::<Result<_, _>>()?,
            lanes_ready: settled.lanes_ready.into_iter().map(LaneId).collect(),
            next_due: settled.next_due_ms.map(Timestamp::from_ms),
            replayed: settled.replayed,
        })
    }
}
