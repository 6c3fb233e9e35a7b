//! The metrics of consumers of a broker. The crate that implements consumers supplies the readings; the names
//! are here.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use super::{
    OTHER, SERIES_MAX,
    histogram::{Histogram, Reading},
    names::{self, Metric},
    text::Text,
};

/// How long the deliveries of one consumer took.
#[derive(Debug)]
pub struct ConsumerTimes {
    waited: Histogram,
    handled: Histogram,
}

impl Default for ConsumerTimes {
    fn default() -> Self {
        Self {
            waited: Histogram::of_seconds(&names::AMQP_BUFFER_WAIT),
            handled: Histogram::of_seconds(&names::AMQP_HANDLER_DURATION),
        }
    }
}

impl ConsumerTimes {
    /// Records how long a delivery waited for a worker.
    pub fn waited(&self, time: Duration) {
        self.waited.observe(time);
    }

    /// Records how long a handler ran, with any result.
    pub fn handled(&self, time: Duration) {
        self.handled.observe(time);
    }
}

/// The state and the counters of one consumer.
#[derive(Debug, Clone, Default)]
pub struct ConsumerReading {
    /// The queue at the broker.
    pub queue: String,
    /// The event type of its messages; may be empty.
    pub event_type: String,
    /// Whether it is subscribed.
    pub is_consuming: bool,
    /// The configured number of handlers that may run at once.
    pub workers: u64,
    /// The number of handlers that may run at once now.
    pub allowed: u64,
    /// Handlers that run.
    pub busy: u64,
    /// Deliveries that the broker may send ahead now.
    pub prefetch: u64,
    /// Deliveries taken.
    pub deliveries: u64,
    /// Deliveries that had been delivered before.
    pub redeliveries: u64,
    /// Deliveries answered with ack, with reject, and requeued.
    pub answered: [u64; ANSWERS.len()],
    /// Results that came after their channel was closed.
    pub unanswered: u64,
    /// Channels that were opened.
    pub channels: u64,
    /// Messages that wait at the broker, if known.
    pub queue_messages: Option<u64>,
    /// How long its deliveries took.
    pub times: Arc<ConsumerTimes>,
}

/// The names of the answers.
const ANSWERS: [&str; 3] = ["ack", "reject", "requeue"];

/// The source of the readings. Called for every scrape, so it must not wait.
#[derive(Clone)]
pub struct ConsumerSource(Arc<dyn Fn() -> Vec<ConsumerReading> + Send + Sync>);

impl ConsumerSource {
    /// Reads with this function.
    pub fn new(read: impl Fn() -> Vec<ConsumerReading> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The readings now.
    pub fn read(&self) -> Vec<ConsumerReading> {
        (self.0)()
    }
}

impl fmt::Debug for ConsumerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsumerSource")
    }
}

/// The consumers of one queue and event type together: apart they would give the same series twice.
struct Row {
    sum: ConsumerReading,
    waited: Reading,
    handled: Reading,
}

impl Row {
    fn of(reading: ConsumerReading) -> Self {
        let (waited, handled) = (reading.times.waited.read(), reading.times.handled.read());
        Self { sum: reading, waited, handled }
    }

    fn add(&mut self, other: &Self) {
        let (sum, more) = (&mut self.sum, &other.sum);
        sum.is_consuming &= more.is_consuming;
        for (figure, n) in [
            (&mut sum.workers, more.workers),
            (&mut sum.allowed, more.allowed),
            (&mut sum.busy, more.busy),
            (&mut sum.prefetch, more.prefetch),
            (&mut sum.deliveries, more.deliveries),
            (&mut sum.redeliveries, more.redeliveries),
            (&mut sum.unanswered, more.unanswered),
            (&mut sum.channels, more.channels),
        ] {
            *figure += n;
        }
        for (figure, n) in sum.answered.iter_mut().zip(more.answered) {
            *figure += n;
        }
        // Consumers of one queue report the same depth; of several queues the deepest is shown.
        sum.queue_messages = sum.queue_messages.max(more.queue_messages);
        self.waited.add(&other.waited);
        self.handled.add(&other.handled);
    }
}

type Rows = BTreeMap<(String, String), Row>;

/// At most as many series as the bound allows. Consumers start with the process, so the same ones keep their
/// series.
fn rows(readings: Vec<ConsumerReading>) -> Rows {
    let mut rows = Rows::new();
    for reading in readings {
        let own = (reading.queue.clone(), reading.event_type.clone());
        let is_full = rows.len() >= SERIES_MAX && !rows.contains_key(&own);
        let key = if is_full { (OTHER.to_owned(), OTHER.to_owned()) } else { own };
        let row = Row::of(reading);
        match rows.get_mut(&key) {
            Some(known) => known.add(&row),
            None => drop(rows.insert(key, row)),
        }
    }
    rows
}

/// Writes every metric of consumers.
pub(super) fn write(text: &mut Text, readings: Vec<ConsumerReading>) {
    let rows = rows(readings);
    let mut each = |metric: &'static Metric, figure: fn(&ConsumerReading) -> Option<u64>| {
        let mut family = text.family(metric);
        for ((queue, event_type), row) in &rows {
            if let Some(figure) = figure(&row.sum) {
                family.value(&[queue, event_type], figure as f64);
            }
        }
    };
    each(&names::AMQP_DELIVERIES, |one| Some(one.deliveries));
    each(&names::AMQP_REDELIVERIES, |one| Some(one.redeliveries));
    each(&names::AMQP_UNANSWERED, |one| Some(one.unanswered));
    each(&names::AMQP_CHANNELS, |one| Some(one.channels));
    each(&names::AMQP_CONSUMING, |one| Some(u64::from(one.is_consuming)));
    each(&names::AMQP_PREFETCH, |one| Some(one.prefetch));
    each(&names::AMQP_WORKERS, |one| Some(one.workers));
    each(&names::AMQP_WORKERS_ALLOWED, |one| Some(one.allowed));
    each(&names::AMQP_WORKERS_BUSY, |one| Some(one.busy));
    each(&names::AMQP_QUEUE_MESSAGES, |one| one.queue_messages);
    let mut family = text.family(&names::AMQP_ACKS);
    for ((queue, event_type), row) in &rows {
        for (answer, n) in ANSWERS.iter().zip(row.sum.answered) {
            family.value(&[queue, event_type, answer], n as f64);
        }
    }
    let mut family = text.family(&names::AMQP_BUFFER_WAIT);
    for ((queue, event_type), row) in &rows {
        family.histogram(&[queue, event_type], &row.waited);
    }
    let mut family = text.family(&names::AMQP_HANDLER_DURATION);
    for ((queue, event_type), row) in &rows {
        family.histogram(&[queue, event_type], &row.handled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(queue: &str, deliveries: u64) -> ConsumerReading {
        let answered = [deliveries, 0, 1];
        ConsumerReading { queue: queue.to_owned(), deliveries, answered, ..ConsumerReading::default() }
    }

    fn page(readings: Vec<ConsumerReading>) -> String {
        let mut text = Text::default();
        write(&mut text, readings);
        text.finish()
    }

    #[track_caller]
    fn assert_has(page: &str, line: &str) {
        assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
    }

    #[test]
    fn consumers_of_one_queue_and_type_are_one_series() {
        let (one, other) = (reading("q", 3), reading("q", 4));
        one.times.handled(Duration::from_millis(1));
        other.times.handled(Duration::from_secs(700));
        let page = page(vec![one, other, reading("r", 5)]);
        assert_has(&page, "windlass_amqp_deliveries_total{queue=\"q\",event_type=\"\"} 7");
        assert_has(&page, "windlass_amqp_deliveries_total{queue=\"r\",event_type=\"\"} 5");
        assert_has(&page, "windlass_amqp_acks_total{queue=\"q\",event_type=\"\",result=\"requeue\"} 2");
        assert_has(&page, "windlass_amqp_handler_duration_seconds_count{queue=\"q\",event_type=\"\"} 2");
    }

    #[test]
    fn consumers_beyond_the_bound_are_summed() {
        let page = page((0..SERIES_MAX as u64 + 3).map(|n| reading(&format!("q{n:03}"), 1)).collect());
        let series = page.lines().filter(|line| line.starts_with("windlass_amqp_deliveries_total{")).count();
        assert_eq!(series, SERIES_MAX + 1);
        assert_has(&page, "windlass_amqp_deliveries_total{queue=\"_other\",event_type=\"_other\"} 3");
    }

    #[test]
    fn an_unknown_depth_is_left_out() {
        let known = ConsumerReading { queue_messages: Some(9), ..reading("q", 0) };
        assert_has(&page(vec![known]), "windlass_amqp_queue_messages{queue=\"q\",event_type=\"\"} 9");
        assert!(!page(vec![reading("q", 0)]).contains("windlass_amqp_queue_messages{"));
    }
}
