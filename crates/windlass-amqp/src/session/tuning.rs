//! The looks of an adaptive consumer, and what follows from them.

use std::{sync::atomic::Ordering, time::Duration};

use lapin::{options::QueueDeclareOptions, types::FieldTable};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Shift;
use crate::{
    adaptive::{Adaptive, LOOK_EVERY, Look},
    connection::short,
    meters::Meters,
};

/// When to look, and what the last look saw.
pub struct Tuning {
    adaptive: Adaptive,
    clock: Interval,
    ended: u64,
    busy_nanos: u64,
}

impl Tuning {
    pub fn new(min: usize, max: usize, meters: &Meters) -> Self {
        let mut clock = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (ended, busy_nanos) = read(meters);
        Self { adaptive: Adaptive::new(min, max), clock, ended, busy_nanos }
    }

    pub fn limit(&self) -> usize {
        self.adaptive.limit()
    }
}

/// Waits for the next look; for ever if there is none. Cancel safe.
pub async fn tick(tuning: &mut Option<Tuning>) {
    match tuning {
        Some(tuning) => drop(tuning.clock.tick().await),
        None => std::future::pending().await,
    }
}

fn read(meters: &Meters) -> (u64, u64) {
    (meters.ended.load(Ordering::Relaxed), meters.busy_nanos.load(Ordering::Relaxed))
}

impl Shift<'_> {
    /// Looks at the queue and at what was handled, and sets the limit.
    pub(super) async fn tune(&mut self) -> Result<(), String> {
        let queue = short(&self.plan.queue).map_err(|error| error.to_string())?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let asked = self.session.channel.queue_declare(queue, options, FieldTable::default()).await;
        let waiting = u64::from(asked.map_err(|error| error.to_string())?.message_count());
        let Some(tuning) = &mut self.tuning else { return Ok(()) };
        let (ended, busy_nanos) = read(self.meters);
        let look = Look {
            waiting: waiting + self.buffer.len() as u64,
            ended: ended - tuning.ended,
            busy: Duration::from_nanos(busy_nanos - tuning.busy_nanos),
        };
        (tuning.ended, tuning.busy_nanos) = (ended, busy_nanos);
        if let Some(change) = tuning.adaptive.adjust(look) {
            self.meters.limit.store(change.limit as u64, Ordering::Relaxed);
            let (queue, event_type) = (&self.plan.queue, &self.plan.event_type);
            tracing::info!(%queue, %event_type, limit = change.limit, reason = change.reason, "workers in use changed");
        }
        Ok(())
    }
}
