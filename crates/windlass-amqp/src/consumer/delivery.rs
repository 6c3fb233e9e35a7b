//! A message as its handler receives it.

use std::fmt;

use lapin::{
    BasicProperties,
    types::{AMQPValue, ShortString},
};
use windlass::{
    handler::Cancellation,
    trace::{TRACEPARENT, TRACESTATE, TraceContext},
};

/// The header in which a quorum queue counts deliveries.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// A message with its delivery data from the broker.
pub struct Delivery {
    pub(crate) body: Vec<u8>,
    pub(crate) exchange: String,
    pub(crate) routing_key: String,
    pub(crate) is_redelivered: bool,
    pub(crate) properties: BasicProperties,
    pub(crate) cancellation: Cancellation,
    pub(crate) trace: Option<TraceContext>,
}

impl Delivery {
    pub(crate) fn new(delivery: lapin::message::Delivery) -> Self {
        let mut delivery = Self {
            body: delivery.data,
            exchange: delivery.exchange.into(),
            routing_key: delivery.routing_key.into(),
            is_redelivered: delivery.redelivered,
            properties: delivery.properties,
            cancellation: Cancellation::new(),
            trace: None,
        };
        delivery.trace = TraceContext::from_stored(delivery.header(TRACEPARENT).as_deref());
        delivery
    }

    /// The bytes of the message.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The exchange that it was published to; the default one is empty.
    pub fn exchange(&self) -> &str {
        &self.exchange
    }

    /// The routing key that it was published with.
    pub fn routing_key(&self) -> &str {
        &self.routing_key
    }

    /// Whether the broker has delivered it before, to any consumer.
    pub fn is_redelivered(&self) -> bool {
        self.is_redelivered
    }

    /// How often it was delivered before, as far as the broker says. Quorum queues count; other queues only
    /// say whether it was delivered before, which counts as one.
    pub fn delivered_before(&self) -> u32 {
        let counted = self.value(DELIVERY_COUNT).and_then(|value| match value {
            AMQPValue::ShortShortInt(count) => u32::try_from(*count).ok(),
            AMQPValue::ShortInt(count) => u32::try_from(*count).ok(),
            AMQPValue::LongInt(count) => u32::try_from(*count).ok(),
            AMQPValue::LongLongInt(count) => Some(u32::try_from((*count).max(0)).unwrap_or(u32::MAX)),
            AMQPValue::ShortShortUInt(count) => Some(u32::from(*count)),
            AMQPValue::ShortUInt(count) => Some(u32::from(*count)),
            AMQPValue::LongUInt(count) => Some(*count),
            _ => None,
        });
        counted.unwrap_or_else(|| u32::from(self.is_redelivered))
    }

    /// The publisher's id of the message.
    pub fn message_id(&self) -> Option<&str> {
        self.properties.message_id().as_ref().map(ShortString::as_str)
    }

    /// The id that links it to another message.
    pub fn correlation_id(&self) -> Option<&str> {
        self.properties.correlation_id().as_ref().map(ShortString::as_str)
    }

    /// The type that the publisher gave it.
    pub fn event_type(&self) -> Option<&str> {
        self.properties.kind().as_ref().map(ShortString::as_str)
    }

    /// The format that the publisher gave, such as `application/json`.
    pub fn content_type(&self) -> Option<&str> {
        self.properties.content_type().as_ref().map(ShortString::as_str)
    }

    /// The value of a header that is text, a number or a flag, as text.
    pub fn header(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            AMQPValue::Boolean(flag) => Some(flag.to_string()),
            AMQPValue::ShortShortInt(number) => Some(number.to_string()),
            AMQPValue::ShortShortUInt(number) => Some(number.to_string()),
            AMQPValue::ShortInt(number) => Some(number.to_string()),
            AMQPValue::ShortUInt(number) => Some(number.to_string()),
            AMQPValue::LongInt(number) => Some(number.to_string()),
            AMQPValue::LongUInt(number) => Some(number.to_string()),
            AMQPValue::LongLongInt(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Where it stands in a trace, to send on as `traceparent`: its publisher's span, or with a tracer the
    /// span of its handler.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// The data of tracing systems that belongs to it, to send on as `tracestate`.
    pub fn trace_state(&self) -> Option<String> {
        self.header(TRACESTATE).filter(|_| self.trace.is_some())
    }

    /// Cancelled when the handler should end: its time limit has passed, or the process stops and the drain
    /// is over.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn value(&self, name: &str) -> Option<&AMQPValue> {
        self.properties.headers().as_ref()?.inner().get(name)
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the body nor the headers: they may contain secrets.
        f.debug_struct("Delivery")
            .field("message_id", &self.message_id())
            .field("routing_key", &self.routing_key)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
