//! A consumer as it is declared.

use std::{fmt, time::Duration};

use windlass::{IntoOutcome, Tracer};

use crate::{
    Delivery, Error, Redelivery, Sizes, Topology,
    handler::{self, MessageHandler, Run},
    sizing::{cpus, sizes},
    topology::{QueueKind, check_name},
};

/// What is consumed from one queue, and how. One channel and one consumer tag at the broker, however many workers it has.
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

/// Told of each answer: how long after the start of its handler it was handed to the connection.
pub type OnSettled = Box<dyn Fn(Duration) + Send + Sync>;

impl Consumer {
    /// Deliveries of a queue, read from JSON, go to this handler.
    pub fn new<Args>(queue: impl Into<String>, handler: impl MessageHandler<Args>) -> Self {
        Self::of(queue.into(), handler.erased())
    }

    /// Deliveries of a queue go to this handler as they are.
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

    /// The name of the consumer at the broker; without one it is made from the queue and this process.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// What the messages are; in every log line and metric of this consumer.
    pub fn event_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = Some(event_type.into());
        self
    }

    /// A delivery whose type is not the [`event_type`](Self::event_type) is rejected without being handled.
    pub fn strict_event_type(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// How many deliveries are handled at once: 0 means CPUs × 4, 1 keeps their order, at most 200.
    pub fn workers(mut self, workers: i64) -> Self {
        self.workers = workers;
        self
    }

    /// How many deliveries the broker may send ahead: 0 means workers × 10 and at most 500, at most 1000.
    pub fn prefetch(mut self, prefetch: i64) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Uses between so many workers and [`workers`](Self::workers), as the depth of the queue and the latency of the handlers need
    /// it: enough to empty the queue in ten seconds, and fewer again when more of them finish no more. Every change is logged with
    /// its reason.
    pub fn adaptive(mut self, min: i64) -> Self {
        self.adaptive_min = Some(min);
        self
    }

    /// Nobody else may consume from the queue meanwhile.
    pub fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// Of all consumers of the queue only one at a time gets deliveries. A property of the queue, which must be in the same set.
    pub fn single_active(mut self) -> Self {
        self.is_single_active = true;
        self
    }

    /// How long a handler may take; after that the delivery has failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A delivery that failed comes back up to so many times before it is rejected. Only quorum queues count deliveries, so on
    /// others one is the most.
    pub fn redeliver(mut self, max: u32) -> Self {
        self.redelivery = Redelivery { max };
        self
    }

    /// Calls this for every delivery that was handled, with the time from the start of its handler until its answer was handed to
    /// the connection. It runs where deliveries are taken, so it must be quick.
    pub fn on_settled(mut self, tell: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.on_settled = Some(Box::new(tell));
        self
    }

    /// Checks it and fills in what was left open.
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
                "queue {:?} is to deliver again {} times, but a classic queue does not count: use a quorum queue, or 1",
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

/// The least number of workers of an adaptive consumer.
fn least(min: i64, workers: usize) -> Result<usize, Error> {
    let fitting = usize::try_from(min).ok().filter(|min| (1..=workers).contains(min));
    fitting.ok_or_else(|| {
        Error::Declaration(format!("the least number of workers must be 1 to {workers}, the most, not {min}"))
    })
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A consumer with everything decided. It is built once and shared, never copied field by field.
pub struct Plan {
    pub queue: String,
    pub tag: String,
    /// Empty if none was named.
    pub event_type: String,
    pub is_strict: bool,
    pub sizes: Sizes,
    /// The least number of workers, if it is to change.
    pub adaptive_min: Option<usize>,
    pub is_exclusive: bool,
    pub is_single_active: bool,
    pub timeout: Option<Duration>,
    pub redelivery: Redelivery,
    pub on_settled: Option<OnSettled>,
    pub run: Run,
    /// Who is told of its deliveries, if anybody.
    pub tracer: Option<Tracer>,
}

impl Plan {
    /// Whether nobody else gets deliveries of the queue for as long as it is subscribed.
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
    fn what_cannot_work_is_refused_with_the_reason() {
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
