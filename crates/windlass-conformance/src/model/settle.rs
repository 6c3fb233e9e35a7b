//! Settle and progress: writes that only the current lease may make.

use windlass_core::{Error, LeaseRef, Result, SettleBatch, Settled, State, WorkerId};

use super::{Model, Now};
use crate::fault::Fault;

impl Model {
    /// Applies a batch once; a batch that is sent again gets the stored answer.
    pub fn settle(&mut self, now: Now, batch: &SettleBatch) -> Result<Settled> {
        let receipt = (batch.worker, batch.settler_no);
        if let Some((batch_no, answer)) = self.receipts.get(&receipt)
            && *batch_no >= batch.batch_no
            && !self.has(Fault::ReceiptIgnored)
        {
            if *batch_no > batch.batch_no {
                let text = format!("batch {} is older than the last, {batch_no}", batch.batch_no);
                return Err(Error::Conflict(text));
            }
            return Ok(Settled { replayed: true, ..answer.clone() });
        }
        let before = self.last_ready_seq;
        let mut fenced = Vec::new();
        let mut items: Vec<_> = batch.items.iter().collect();
        items.sort_by_key(|item| item.lease.id);
        for item in items {
            if self.holds(batch.worker, item.lease) {
                self.settle_one(item.lease.id, &item.settlement, now);
            } else {
                fenced.push(item.lease.id);
            }
        }
        self.give_turns(now);
        let lanes_ready = self.lanes_ready_since(before);
        let answer = Settled { fenced, lanes_ready, next_due: self.next_due(), replayed: false };
        // A worker that is gone holds nothing: a batch that it sends again is fenced again.
        if self.is_registered(batch.worker) {
            self.receipts.insert(receipt, (batch.batch_no, answer.clone()));
        }
        Ok(answer)
    }

    /// The fence. It checks the worker's row, not the worker's lease time: a result that was late because of
    /// an outage counts if no other worker took the task.
    pub(super) fn holds(&self, worker: WorkerId, lease: LeaseRef) -> bool {
        self.tasks.get(&lease.id).is_some_and(|task| {
            task.record.state == State::Running
                && (self.has(Fault::FenceIgnored)
                    || task.record.lease == lease.lease
                        && (task.record.worker == Some(worker) || self.has(Fault::FenceIgnoresWorker)))
        })
    }

    /// Keeps the progress of an attempt.
    pub fn progress(&mut self, worker: WorkerId, lease: LeaseRef, progress: &str) -> Result<()> {
        if !self.holds(worker, lease) && !self.has(Fault::ProgressNotFenced) {
            return Err(Error::LeaseLost(lease.id));
        }
        let progress = self.rules.clip_error(progress);
        self.edit(lease.id, |task| task.progress = Some(progress));
        Ok(())
    }
}
