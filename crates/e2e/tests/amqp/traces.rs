//! One trace from a publisher through the broker to the handler or the target, as an OTLP receiver sees it.

use std::{sync::Arc, time::Duration};

use e2e::{
    collector::{Collector, Span},
    process::END_LIMIT,
    target::Target,
    until,
    up::Up,
};
use rustix::process::Signal;
use windlass::trace::{TraceContext, Tracer};
use windlass_amqp::{Consumers, Message, PublisherOptions, Queue};
use windlass_otlp::{Exporter, Service};

use crate::rig::{consume_with, name, node};

const REMOTE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Publishes one message below a span of the test, and sends that span.
async fn publish_traced(collector: &Collector, url: &str, queue: &str, message: Message) {
    let service = Service { name: "shop".to_owned(), version: "7".to_owned() };
    let exporter = Exporter::start(collector.url().parse().unwrap(), service).unwrap();
    let running = Consumers::connect(url).queue(Queue::durable(queue));
    let running = running.tracer(Tracer::new(Arc::clone(&exporter) as _)).start().await.unwrap();
    let publisher = running.publisher(PublisherOptions::default());
    publisher.publish("", queue, &message).await.unwrap();
    running.stop(END_LIMIT).await;
    assert_eq!(exporter.shutdown(END_LIMIT).await.exported, 1);
}

/// One span for each verb, each the parent of the next, all in the caller's trace; returns the last.
fn chain(spans: &[Span], verbs: &[&str]) -> Span {
    let remote: TraceContext = REMOTE.parse().unwrap();
    let mut parent = format!("{:016x}", remote.span_id);
    let mut last = None;
    for verb in verbs {
        let found: Vec<&Span> =
            spans.iter().filter(|span| span.name.split(' ').next() == Some(verb)).collect();
        assert_eq!(found.len(), 1, "{verb} in {spans:?}");
        assert_eq!(found[0].parent.as_ref(), Some(&parent), "{verb} in {spans:?}");
        assert_eq!(found[0].trace, format!("{:032x}", remote.trace_id));
        parent.clone_from(&found[0].id);
        last = Some(found[0].clone());
    }
    assert_eq!(spans.len(), verbs.len(), "{spans:?}");
    last.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_becomes_a_task_is_one_trace() {
    let (broker, queue) = (node(), name("bridged"));
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start().await.unwrap());
    let otlp = collector.url();
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nto = \"store\"\nkind = \"echo\"\n"
    );
    let mut consuming = consume_with(folder.path(), &broker.url(), &lists, &["--otlp", &otlp], &[]);
    let remote: TraceContext = REMOTE.parse().unwrap();
    let message = Message::json(&1).unwrap().trace(remote);
    publish_traced(&collector, &broker.url(), &queue, message).await;
    // Spans arrive while it runs: the message has become a task.
    collector.wait_for(4).await.unwrap();
    consuming.signal(Signal::TERM).unwrap();
    assert_eq!(consuming.wait(END_LIMIT).unwrap().code(), Some(0));
    let mut up = Up::on(&folder.path().join("windlass.db"), ["--otlp", &otlp]).unwrap();
    collector.wait_for(7).await.unwrap();
    up.process.signal(Signal::TERM).unwrap();
    assert_eq!(up.process.wait(END_LIMIT).unwrap().code(), Some(0));
    chain(&collector.spans(), &["publish", "receive", "handle", "enqueue", "claim", "run", "settle"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_target_of_a_message_is_traced_below_the_handler() {
    let (broker, queue) = (node(), name("posted-on"));
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start().await.unwrap());
    let target = Target::start(Duration::ZERO).await.unwrap();
    let (otlp, url) = (collector.url(), target.url());
    let lists = format!(
        "[[amqp.queue]]\nname = \"{queue}\"\n[[amqp.consumer]]\nqueue = \"{queue}\"\nto = \"http\"\nurl = \"{url}\"\n"
    );
    let arguments = ["--otlp", otlp.as_str(), "--metrics-listen", "127.0.0.1:0"];
    let mut consuming = consume_with(folder.path(), &broker.url(), &lists, &arguments, &[]);
    let remote: TraceContext = REMOTE.parse().unwrap();
    let message = Message::json(&1).unwrap().trace(remote).trace_state("vendor=1");
    publish_traced(&collector, &broker.url(), &queue, message).await;
    until(async || if target.book().strangers == 1 { Ok(()) } else { Err("nothing came".to_owned()) })
        .await
        .unwrap();
    consuming.signal(Signal::TERM).unwrap();
    assert_eq!(consuming.wait(END_LIMIT).unwrap().code(), Some(0));
    let run = chain(&collector.spans(), &["publish", "receive", "handle"]);
    let expected = (format!("00-{}-{}-01", run.trace, run.id), Some("vendor=1".to_owned()));
    assert_eq!(target.book().stranger_traces, [expected]);
}
