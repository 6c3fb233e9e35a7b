//! The looks of a consumer at its queue, and what follows from them: the depth is noted, an adaptive consumer sets its limit, and
//! the prefetch is kept within what memory can hold.

use std::{pin::Pin, sync::atomic::Ordering, time::Duration};

use lapin::{Channel, options::QueueDeclareOptions, types::FieldTable};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Shift;
use crate::{
    adaptive::{Adaptive, LOOK_EVERY, Look},
    connection::short,
    consumer::Plan,
    meters::Meters,
};

/// How often a consumer that does not adapt looks: often enough for a monitor.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(5);

type Asked = Pin<Box<dyn Future<Output = Result<u64, String>> + Send>>;

/// When to look, and a look that is under way.
pub struct Looks {
    channel: Channel,
    queue: String,
    clock: Interval,
    /// Kept here and not awaited in one go, so that a broker that is slow to answer holds up nothing else.
    asked: Option<Asked>,
}

impl Looks {
    pub fn new(channel: &Channel, plan: &Plan) -> Self {
        let every = if plan.adaptive_min.is_some() { LOOK_EVERY } else { IDLE_LOOK_EVERY };
        // The first one soon: a queue that nobody takes from is news.
        let first = Instant::now() + LOOK_EVERY;
        let mut clock = interval_at(first, every);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { channel: channel.clone(), queue: plan.queue.clone(), clock, asked: None }
    }

    /// Messages that wait at the broker, when it is time to know. Cancel safe.
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

/// What an adaptive consumer remembers from one look to the next.
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
    /// So many messages wait at the broker.
    pub(super) async fn looked(&mut self, waiting: u64) -> Result<(), String> {
        self.meters.note_depth(Some(waiting));
        self.tune(waiting);
        self.fit_window().await
    }

    /// Looks at the queue and at what was handled, and sets the limit.
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
