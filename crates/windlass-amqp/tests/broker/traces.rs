//! One trace from the publisher through the consumer to its handler.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use windlass::trace::{Span, SpanKind, SpanSink, TraceContext, Tracer, Value};
use windlass_amqp::{Consumer, Consumers, Delivery, Message, PublisherOptions, Queue};

use crate::rig::{LIMIT, name, node};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNKEPT: &str = "00-0000000000000000000000000000beef-00f067aa0ba902b7-00";

/// Keeps every span.
#[derive(Default)]
struct Kept(Mutex<Vec<Span>>);

impl SpanSink for Kept {
    fn record(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

impl Kept {
    fn only(&self, verb: &str) -> Span {
        let spans = self.0.lock().unwrap();
        let found: Vec<&Span> =
            spans.iter().filter(|span| span.name.split(' ').next() == Some(verb)).collect();
        assert_eq!(found.len(), 1, "{verb} in {spans:?}");
        found[0].clone()
    }
}

#[tokio::test]
async fn publisher_consumer_and_handler_share_one_trace() {
    let (broker, queue, kept) = (node(), name("traced"), Arc::new(Kept::default()));
    let (sender, mut handled) = mpsc::unbounded_channel();
    let on = move |delivery: Delivery| {
        let _ = sender.send((delivery.trace(), delivery.trace_state()));
        async {}
    };
    let consumer = Consumer::raw(&queue, on).event_type("order.created");
    let consumers = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).consume(consumer);
    let consumers = consumers.tracer(Tracer::new(kept.clone())).start().await.unwrap();
    let publisher = consumers.publisher(PublisherOptions::default());
    let remote: TraceContext = REMOTE.parse().unwrap();
    let message = Message::bytes("x").id("m-1").trace(remote).trace_state("vendor=1");
    publisher.publish("", &queue, &message).await.unwrap();
    let (trace, state) = handled.recv().await.unwrap();
    assert_eq!(state.as_deref(), Some("vendor=1"));
    // Another process decided not to keep this trace; it is passed on unchanged.
    let unkept: TraceContext = UNKEPT.parse().unwrap();
    publisher.publish("", &queue, &Message::bytes("y").trace(unkept)).await.unwrap();
    assert_eq!(handled.recv().await.unwrap(), (Some(unkept), None));
    consumers.stop(LIMIT).await;

    let [sent, received, run] = ["publish", "receive", "handle"].map(|verb| kept.only(verb));
    assert_eq!(sent.parent, Some(remote.span_id));
    assert_eq!(received.parent, Some(sent.context.span_id));
    assert_eq!(run.parent, Some(received.context.span_id));
    assert_eq!(trace, Some(run.context), "the handler stands on its own span");
    assert_eq!((sent.kind, received.kind), (SpanKind::Producer, SpanKind::Consumer));
    for span in [&sent, &received, &run] {
        assert_eq!((span.context.trace_id, span.failure), (remote.trace_id, None));
        assert!(span.start <= span.end);
    }
    for span in [&received, &run] {
        let event_type = ("windlass.event_type", Value::Text("order.created".to_owned()));
        assert!(span.attributes.contains(&event_type), "{span:?}");
    }
}

#[tokio::test]
async fn trace_is_passed_on_without_a_tracer() {
    let (broker, queue, kept) = (node(), name("handed-on"), Arc::new(Kept::default()));
    let (sender, mut handled) = mpsc::unbounded_channel();
    let on = move |delivery: Delivery| {
        let _ = sender.send(delivery.trace());
        async { Err::<(), _>(std::io::Error::other("secret words")) }
    };
    let plain = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let remote: TraceContext = REMOTE.parse().unwrap();
    let message = Message::bytes("x").trace(remote);
    plain.publisher(PublisherOptions::default()).publish("", &queue, &message).await.unwrap();
    let traced = Consumers::connect(broker.url()).consume(Consumer::raw(&queue, on));
    let traced = traced.tracer(Tracer::new(kept.clone())).start().await.unwrap();
    assert_eq!(handled.recv().await.unwrap().map(|trace| trace.trace_id), Some(remote.trace_id));
    let unroutable = traced.publisher(PublisherOptions::default());
    unroutable.publish("", &name("nobody"), &Message::bytes("x")).await.unwrap_err();
    traced.stop(LIMIT).await;
    plain.stop(LIMIT).await;
    assert_eq!(kept.only("receive").parent, Some(remote.span_id), "what was published without a span");
    assert_eq!(kept.only("handle").failure, Some("the handler failed"));
    assert!(kept.only("publish").failure.is_some());
    assert!(!format!("{:?}", kept.0.lock().unwrap()).contains("secret"));
}
