//! Measures the time from the start of a handler until its answer was sent, if the application asked for it.

use std::{collections::BTreeMap, mem, time::Instant};

use crate::{consumer::Plan, session::ledger::Frame};

/// The start times of handlers that have ended and whose answers are not sent yet.
#[derive(Debug, Default)]
pub struct Settled {
    starts: BTreeMap<u64, Instant>,
}

impl Settled {
    /// Notes the start of a handler that has ended, if the application asked for it.
    pub fn ended(&mut self, plan: &Plan, tag: u64, started: Option<Instant>) {
        if let (Some(_), Some(started)) = (&plan.on_settled, started) {
            self.starts.insert(tag, started);
        }
    }

    /// Reports the deliveries that a frame has answered.
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
