//! A message as its handler gets it.

use std::fmt;

use lapin::{
    BasicProperties,
    types::{AMQPValue, ShortString},
};
use windlass::{
    Cancellation, TraceContext,
    trace::{TRACEPARENT, TRACESTATE},
};

/// The header in which a quorum queue counts.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// A message with what the broker says about it.
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

    /// Whether the broker has delivered it before, to whomever.
    pub fn is_redelivered(&self) -> bool {
        self.is_redelivered
    }

    /// How often it was delivered before, as far as the broker says: quorum queues count, of others it is only known whether it
    /// was at all.
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

    /// The id that ties it to another message.
    pub fn correlation_id(&self) -> Option<&str> {
        self.properties.correlation_id().as_ref().map(ShortString::as_str)
    }

    /// The type that the publisher gave it.
    pub fn event_type(&self) -> Option<&str> {
        self.properties.kind().as_ref().map(ShortString::as_str)
    }

    /// What the publisher says that the bytes are, such as `application/json`.
    pub fn content_type(&self) -> Option<&str> {
        self.properties.content_type().as_ref().map(ShortString::as_str)
    }

    /// A header that is a text, or a number or a flag written as one.
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

    /// Where it stands in a trace: below its publisher's span, or for the handler of a consumer that is traced on the handler's own.
    /// What to send along as `traceparent`.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// What tracing systems carry beside that, to be sent along as `tracestate`.
    pub fn trace_state(&self) -> Option<String> {
        self.header(TRACESTATE).filter(|_| self.trace.is_some())
    }

    /// Thrown when the handler should end: its time is over, or the process stops and the drain is over.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn value(&self, name: &str) -> Option<&AMQPValue> {
        self.properties.headers().as_ref()?.inner().get(name)
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the body nor the headers: they may hold anything.
        f.debug_struct("Delivery")
            .field("message_id", &self.message_id())
            .field("routing_key", &self.routing_key)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
