//! The declaration of a consumer.

pub(crate) mod adaptive;
pub(crate) mod delivery;
pub(crate) mod footprint;
pub(crate) mod handler;
pub(crate) mod sizing;
pub(crate) mod supervisor;
pub(crate) mod window;

use std::{fmt, time::Duration};

use windlass::{handler::IntoOutcome, trace::Tracer};

use self::{
    handler::{MessageHandler, Run},
    sizing::{cpus, sizes},
};
use crate::{
    Delivery, Error, Redelivery, Sizes, Topology,
    topology::{QueueKind, check_name},
};

/// What to consume from one queue, and how. It has one channel and one consumer tag at the broker, however
/// many workers it has.
#[must_use = "hand it to Consumers::consume"]
pub struct Consumer {
    queue: String,
    tag: Option<String>,
    event_type: Option<String>,
    is_strict: bool,
    workers: i64,
    prefetch: i64,
    adaptive_min: Option<i64>,
    is_exclusive: bool,
    is_single_active: bool,
    timeout: Option<Duration>,
    redelivery: Redelivery,
    on_settled: Option<OnSettled>,
    run: Run,
}

/// Called for each answer, with the time from the start of the handler until the answer was given to the
/// connection.
pub type OnSettled = Box<dyn Fn(Duration) + Send + Sync>;

impl Consumer {
    /// The handler gets the deliveries of a queue, decoded from JSON.
    pub fn new<Args>(queue: impl Into<String>, handler: impl MessageHandler<Args>) -> Self {
        Self::of(queue.into(), handler.erased())
    }

    /// The handler gets the deliveries of a queue as raw bytes.
    pub fn raw<F, Called>(queue: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Delivery) -> Called + Send + Sync + 'static,
        Called: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self::of(queue.into(), handler::raw(handler))
    }

    fn of(queue: String, run: Run) -> Self {
        Self {
            queue,
            tag: None,
            event_type: None,
            is_strict: false,
            workers: 0,
            prefetch: 0,
            adaptive_min: None,
            is_exclusive: false,
            is_single_active: false,
            timeout: None,
            redelivery: Redelivery::default(),
            on_settled: None,
            run,
        }
    }

    /// The name of the consumer at the broker; the default is made from the queue and this process.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// The event type of the messages, for every log line and metric of this consumer.
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// Rejects a delivery whose type is not the [`event_type`](Self::event_type) without calling the handler.
    pub fn strict_event_type(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// How many deliveries are handled at once: 0 means CPUs × 4, 1 keeps their order, at most 200.
    pub fn workers(mut self, workers: i64) -> Self {
        self.workers = workers;
        self
    }

    /// How many deliveries the broker may send ahead: 0 means workers × 10 but at most 500; the limit is
    /// 1000.
    pub fn prefetch(mut self, prefetch: i64) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Uses between `min` and [`workers`](Self::workers) workers, depending on the depth of the queue and the
    /// latency of the handlers: enough to empty the queue in ten seconds, and fewer again when more of them
    /// do not finish more. Logs every change with its reason.
    pub fn adaptive(mut self, min: i64) -> Self {
        self.adaptive_min = Some(min);
        self
    }

    /// No other consumer may consume from the queue meanwhile.
    pub fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// Only one consumer of the queue at a time gets deliveries. A property of the queue, which must be
    /// declared in the same set.
    pub fn single_active(mut self) -> Self {
        self.is_single_active = true;
        self
    }

    /// How long a handler may run; after that the delivery counts as failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A failed delivery is returned to the queue up to `max` times before it is rejected. Only quorum queues
    /// count deliveries, so on other queues `max` is at most 1.
    pub fn redeliver(mut self, max: u32) -> Self {
        self.redelivery = Redelivery { max };
        self
    }

    /// Calls this for every delivery that was handled, with the time from the start of its handler until its
    /// answer was given to the connection. It runs on the task that takes deliveries, so it must be quick.
    pub fn on_settled(mut self, tell: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.on_settled = Some(Box::new(tell));
        self
    }

    /// Checks the declaration and fills in the defaults.
    pub(crate) fn planned(self, topology: &mut Topology, process: &str) -> Result<Plan, Error> {
        check_name("queue", &self.queue)?;
        if self.is_strict && self.event_type.is_none() {
            let reason = format!(
                "the consumer of queue {:?} is strict about an event type that it does not name",
                self.queue
            );
            return Err(Error::Declaration(reason));
        }
        if self.is_single_active {
            topology.make_single_active(&self.queue)?;
        }
        let is_classic =
            topology.find_queue(&self.queue).is_some_and(|queue| queue.kind == QueueKind::Classic);
        if is_classic && self.redelivery.max > 1 {
            let reason = format!(
                "queue {:?} has redeliver({}), but a classic queue does not count deliveries: use a quorum queue, or redeliver(1)",
                self.queue, self.redelivery.max
            );
            return Err(Error::Declaration(reason));
        }
        let tag = self.tag.unwrap_or_else(|| format!("{}-{process}", self.queue));
        check_name("consumer tag", &tag)?;
        let sizes = sizes(self.workers, self.prefetch, cpus())?;
        let adaptive_min = self.adaptive_min.map(|min| least(min, sizes.workers)).transpose()?;
        Ok(Plan {
            sizes,
            adaptive_min,
            tag,
            event_type: self.event_type.unwrap_or_default(),
            is_strict: self.is_strict,
            is_exclusive: self.is_exclusive,
            timeout: self.timeout,
            redelivery: self.redelivery,
            on_settled: self.on_settled,
            run: self.run,
            queue: self.queue,
            is_single_active: self.is_single_active,
            tracer: None,
        })
    }
}

/// Checks the least number of workers of an adaptive consumer.
fn least(min: i64, workers: usize) -> Result<usize, Error> {
    let fitting = usize::try_from(min).ok().filter(|min| (1..=workers).contains(min));
    fitting.ok_or_else(|| {
        Error::Declaration(format!(
            "the least number of workers must be 1 to {workers} (the number of workers), not {min}"
        ))
    })
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A checked consumer with all defaults filled in. Built once and shared, never copied field by field.
pub struct Plan {
    pub queue: String,
    pub tag: String,
    /// Empty if the consumer has none.
    pub event_type: String,
    pub is_strict: bool,
    pub sizes: Sizes,
    /// The least number of workers, if the consumer is adaptive.
    pub adaptive_min: Option<usize>,
    pub is_exclusive: bool,
    pub is_single_active: bool,
    pub timeout: Option<Duration>,
    pub redelivery: Redelivery,
    pub on_settled: Option<OnSettled>,
    pub run: Run,
    /// The tracer for its deliveries, if there is one.
    pub tracer: Option<Tracer>,
}

impl Plan {
    /// Whether no other consumer gets deliveries of the queue while this one is subscribed.
    pub fn has_queue_alone(&self) -> bool {
        self.is_exclusive || self.is_single_active
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::Queue;

    async fn nothing(_: Delivery) {}

    fn refused(consumer: Consumer, queue: Option<Queue>) -> String {
        let mut topology = Topology::new();
        if let Some(queue) = queue {
            topology.queue(queue);
        }
        consumer.planned(&mut topology, "p").err().unwrap().to_string()
    }

    #[test]
    fn every_option_reaches_the_plan() {
        let mut topology = Topology::new();
        topology.queue(Queue::quorum("q"));
        let consumer = Consumer::raw("q", nothing)
            .tag("t")
            .event_type("e")
            .strict_event_type()
            .workers(3)
            .prefetch(7)
            .adaptive(2)
            .exclusive()
            .single_active()
            .timeout(Duration::from_secs(5))
            .redeliver(4)
            .on_settled(|_| {});
        let plan = consumer.planned(&mut topology, "p").unwrap();
        assert_eq!((plan.queue.as_str(), plan.tag.as_str(), plan.event_type.as_str()), ("q", "t", "e"));
        assert!(plan.is_strict && plan.is_exclusive && plan.on_settled.is_some());
        assert_eq!((plan.sizes.workers, plan.sizes.prefetch, plan.adaptive_min), (3, 7, Some(2)));
        assert_eq!((plan.timeout, plan.redelivery.max), (Some(Duration::from_secs(5)), 4));
        assert!(topology.find_queue("q").unwrap().is_single_active);
    }

    #[test]
    fn invalid_consumers_are_refused_with_the_reason() {
        assert!(refused(Consumer::raw("q", nothing).strict_event_type(), None).contains("does not name"));
        assert!(refused(Consumer::raw("q", nothing).single_active(), None).contains("declare queue"));
        assert!(refused(Consumer::raw("q", nothing).workers(-1), None).contains("workers must be"));
        for min in [0, 5] {
            let reason = refused(Consumer::raw("q", nothing).workers(4).adaptive(min), None);
            assert!(reason.contains("must be 1 to 4"), "{reason}");
        }
        let classic = Some(Queue::durable("q"));
        assert!(refused(Consumer::raw("q", nothing).redeliver(2), classic).contains("does not count"));
    }
}
