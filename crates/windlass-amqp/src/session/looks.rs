//! The regular looks of a consumer at its queue. Each notes the depth, sets the limit of an adaptive
//! consumer, and keeps the prefetch within the memory.

use std::{pin::Pin, sync::atomic::Ordering, time::Duration};

use lapin::{Channel, options::QueueDeclareOptions, types::FieldTable};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Shift;
use crate::{
    connection::short,
    consumer::{
        Plan,
        adaptive::{Adaptive, LOOK_EVERY, Look},
    },
    meters::Meters,
};

/// How often a consumer that is not adaptive looks: often enough for monitoring.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(5);

type Asked = Pin<Box<dyn Future<Output = Result<u64, String>> + Send>>;

/// The time of the next look, and the look under way.
pub struct Looks {
    channel: Channel,
    queue: String,
    clock: Interval,
    /// Kept here instead of awaited at once, so that a slow broker delays nothing else.
    asked: Option<Asked>,
}

impl Looks {
    pub fn new(channel: &Channel, plan: &Plan) -> Self {
        let every = if plan.adaptive_min.is_some() { LOOK_EVERY } else { IDLE_LOOK_EVERY };
        // The first look is soon, because monitoring should show a queue that is not consumed.
        let first = Instant::now() + LOOK_EVERY;
        let mut clock = interval_at(first, every);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { channel: channel.clone(), queue: plan.queue.clone(), clock, asked: None }
    }

    /// Waits for the time of the next look, then returns how many messages wait at the broker. Cancel safe.
    pub async fn next(&mut self) -> Result<u64, String> {
        if self.asked.is_none() {
            self.clock.tick().await;
        }
        let (channel, queue) = (&self.channel, &self.queue);
        let asked = self.asked.get_or_insert_with(|| Box::pin(depth(channel.clone(), queue.clone())));
        let found = asked.await;
        self.asked = None;
        found
    }
}

/// Asks the broker how many messages of a queue wait.
pub async fn depth(channel: Channel, queue: String) -> Result<u64, String> {
    let name = short(&queue).map_err(|error| error.to_string())?;
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let asked = channel.queue_declare(name, options, FieldTable::default()).await;
    asked.map(|queue| u64::from(queue.message_count())).map_err(|error| error.to_string())
}

/// The state of an adaptive consumer between two looks.
pub struct Tuning {
    adaptive: Adaptive,
    ended: u64,
    busy_nanos: u64,
}

impl Tuning {
    pub fn new(min: usize, max: usize, meters: &Meters) -> Self {
        let (ended, busy_nanos) = read(meters);
        Self { adaptive: Adaptive::new(min, max), ended, busy_nanos }
    }

    pub fn limit(&self) -> usize {
        self.adaptive.limit()
    }
}

fn read(meters: &Meters) -> (u64, u64) {
    (meters.ended.load(Ordering::Relaxed), meters.busy_nanos.load(Ordering::Relaxed))
}

impl Shift<'_> {
    /// Handles a look: `waiting` messages wait at the broker.
    pub(super) async fn looked(&mut self, waiting: u64) -> Result<(), String> {
        self.meters.note_depth(Some(waiting));
        self.tune(waiting);
        self.fit_window().await
    }

    /// Sets the limit from the queue and from the finished handlers.
    fn tune(&mut self, waiting: u64) {
        let Some(tuning) = &mut self.tuning else { return };
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
    }
}
