//! Messages from and for another client: Python's pika.

use std::{process::Command, time::Duration};

use tokio::sync::mpsc;
use windlass_amqp::{Consumer, Consumers, Delivery, Message, PublisherOptions, Queue};
use windlass_scratch::python_with;

use crate::rig::{name, node};

/// Takes a message from `QUEUE`, which must be ours, and publishes one to it.
const SCRIPT: &str = r#"
import json, pika, sys
url, theirs, ours = sys.argv[1:]
channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
method, properties, body = channel.basic_get(theirs, auto_ack=True)
print(json.dumps([json.loads(body), properties.message_id, properties.type, properties.delivery_mode,
                  properties.content_type, properties.headers["tenant"]]))
channel.confirm_delivery()
channel.basic_publish("", ours, json.dumps({"from": "pika"}).encode(),
    pika.BasicProperties(message_id="p-1", type="greeting", headers={"tenant": "nine", "n": 5}), mandatory=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pika_and_windlass_read_each_others_messages() {
    let (broker, theirs, ours) = (node(), name("for-pika"), name("from-pika"));
    let (sender, mut received) = mpsc::unbounded_channel();
    let on = move |value: serde_json::Value, delivery: Delivery| {
        let sender = sender.clone();
        async move {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            let (id, kind) = (text(delivery.message_id()), text(delivery.event_type()));
            let _ = sender.send((value, id, kind, delivery.header("tenant"), delivery.header("n")));
        }
    };
    let running = Consumers::connect(broker.url())
        .queue(Queue::durable(&theirs))
        .queue(Queue::durable(&ours))
        .consume(Consumer::new(&ours, on).workers(1));
    let running = running.start().await.unwrap();
    let message = Message::json(&[1, 2]).unwrap().id("w-1").event_type("numbers").header("tenant", "seven");
    running.publisher(PublisherOptions::default()).publish("", &theirs, &message).await.unwrap();
    let python =
        python_with("pika", "it (Debian: apt-get install python3-pika; elsewhere: pip install pika)")
            .unwrap();
    let output = Command::new(python).args(["-c", SCRIPT, &broker.url(), &theirs, &ours]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read, serde_json::json!([[1, 2], "w-1", "numbers", 2, "application/json", "seven"]));
    let (value, id, kind, tenant, number) = received.recv().await.unwrap();
    assert_eq!(value, serde_json::json!({"from": "pika"}));
    assert_eq!((id.as_str(), kind.as_str()), ("p-1", "greeting"));
    assert_eq!((tenant.as_deref(), number.as_deref()), (Some("nine"), Some("5")));
    running.stop(Duration::from_secs(5)).await;
}
