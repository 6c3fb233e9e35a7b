//! How long deliveries took from the start of their handler to their answer, for whoever asked to be told.

use std::{collections::BTreeMap, mem, time::Instant};

use crate::{consumer::Plan, ledger::Frame};

/// Starts of the handlers that have ended and are not answered for yet.
#[derive(Debug, Default)]
pub struct Settled {
    starts: BTreeMap<u64, Instant>,
}

impl Settled {
    /// Notes the start of a handler that has ended, if anybody wants to know.
    pub fn ended(&mut self, plan: &Plan, tag: u64, started: Option<Instant>) {
        if let (Some(_), Some(started)) = (&plan.on_settled, started) {
            self.starts.insert(tag, started);
        }
    }

    /// Tells of the deliveries that a frame has answered for.
    pub fn said(&mut self, plan: &Plan, frame: Frame) {
        let Some(tell) = &plan.on_settled else { return };
        let now = Instant::now();
        match frame {
            Frame::AckUpTo(tag) => {
                let later = self.starts.split_off(&(tag + 1));
                for start in mem::replace(&mut self.starts, later).into_values() {
                    tell(now - start);
                }
            }
            Frame::Ack(tag) | Frame::Reject(tag) | Frame::Requeue(tag) => {
                if let Some(start) = self.starts.remove(&tag) {
                    tell(now - start);
                }
            }
        }
    }
}
