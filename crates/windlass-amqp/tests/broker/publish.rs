//! Publishing.

use windlass_amqp::{Binding, Consumers, Error, Exchange, Message, PublisherOptions, Queue};

use crate::rig::{LIMIT, name, node, wait_for_messages};

#[tokio::test]
async fn confirmed_message_is_in_the_queue() {
    let (broker, queue) = (node(), name("publish"));
    let exchange = format!("{queue}.events");
    let publishing = Consumers::connect(broker.url())
        .exchange(Exchange::topic(&exchange))
        .queue(Queue::durable(&queue))
        .bind(Binding::new(&exchange, &queue, "order.*"));
    let publishing = publishing.start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    publisher.publish(&exchange, "order.created", &Message::bytes("1")).await.unwrap();
    wait_for_messages(&broker, &queue, (1, 0)).await;
    let error = publisher.publish(&exchange, "invoice.created", &Message::bytes("2")).await.unwrap_err();
    assert_eq!(error, Error::Unroutable { exchange, routing_key: "invoice.created".to_owned() });
    wait_for_messages(&broker, &queue, (1, 0)).await;
    publishing.stop(LIMIT).await;
}

#[tokio::test]
async fn message_to_a_missing_exchange_does_not_stop_the_next_one() {
    let (broker, queue) = (node(), name("no-exchange"));
    let publishing = Consumers::connect(broker.url()).queue(Queue::durable(&queue)).start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    let error = publisher.publish(&format!("{queue}.none"), "x", &Message::bytes("1")).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { reason, .. } if reason.contains("no exchange")), "{error}");
    publisher.publish("", &queue, &Message::bytes("2")).await.unwrap();
    wait_for_messages(&broker, &queue, (1, 0)).await;
    publishing.stop(LIMIT).await;
}
