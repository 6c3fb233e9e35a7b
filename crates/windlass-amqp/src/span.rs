//! Deliveries and messages as spans of a trace: from the publisher through the consumer to the handler.
//!
//! ```text
//! caller's span ─► publish E ─► receive Q ─► handle Q ─► calls of the handler, such as enqueue K
//! ```

use windlass::trace::{Begun, SpanKind, Value};

use crate::{Delivery, consumer::Plan, session::decision::End};

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Ends the span of a message, published or not.
pub fn published(span: Begun, exchange: &str, routing_key: &str, id: &str, failure: Option<&'static str>) {
    let name = if exchange.is_empty() { routing_key } else { exchange };
    let attributes = vec![
        ("messaging.system", text("rabbitmq")),
        ("messaging.operation.name", text("publish")),
        ("messaging.destination.name", text(exchange)),
        ("messaging.rabbitmq.destination.routing_key", text(routing_key)),
        ("messaging.message.id", text(id)),
    ];
    span.end(format!("publish {name}"), SpanKind::Producer, attributes, failure);
}

/// The attributes of both spans of a delivery.
fn attributes(
    plan: &Plan,
    verb: &'static str,
    message_id: Option<&str>,
    worker: usize,
) -> Vec<(&'static str, Value)> {
    let mut attributes = vec![
        ("messaging.system", text("rabbitmq")),
        ("messaging.operation.name", text(verb)),
        ("messaging.destination.name", text(&plan.queue)),
        ("windlass.event_type", text(&plan.event_type)),
        ("windlass.worker", Value::Number(worker as i64)),
    ];
    attributes.extend(message_id.map(|id| ("messaging.message.id", text(id))));
    attributes
}

/// Ends the span of a delivery's wait for a worker, and starts the span of its handler, which becomes the
/// delivery's place in the trace.
pub fn started(span: Option<Begun>, plan: &Plan, delivery: &mut Delivery, worker: usize) -> Option<Handling> {
    let received = span?;
    let handled = plan.tracer.as_ref()?.begin(Some(received.context()))?;
    delivery.trace = Some(handled.context());
    let id = delivery.message_id().map(str::to_owned);
    let of_receipt = attributes(plan, "receive", id.as_deref(), worker);
    received.end(format!("receive {}", plan.queue), SpanKind::Consumer, of_receipt, None);
    let attributes = attributes(plan, "handle", id.as_deref(), worker);
    Some(Handling { span: handled, name: format!("handle {}", plan.queue), attributes })
}

/// The span of a running handler.
#[derive(Debug)]
pub struct Handling {
    span: Begun,
    name: String,
    attributes: Vec<(&'static str, Value)>,
}

impl Handling {
    /// Ends the span.
    pub fn end(mut self, end: &End) {
        let (outcome, failure) = end.told();
        self.attributes.push(("windlass.outcome", text(outcome)));
        self.span.end(self.name, SpanKind::Internal, self.attributes, failure);
    }
}
