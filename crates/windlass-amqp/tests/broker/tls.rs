//! TLS to the broker, with a certificate authority of the test.

use windlass_amqp::{Consumers, Error, Message, PublisherOptions, Queue};
use windlass_scratch::{Broker, TlsClients};

use crate::rig::{LIMIT, Record, blocking, fill, name, recorder};

/// A broker with TLS, its address, and the files in its folder.
async fn secured(clients: TlsClients) -> (Broker, String, impl Fn(&str) -> String) {
    let broker = blocking(move || Broker::start_with_tls(clients).unwrap()).await;
    let (url, folder) = (broker.tls_url().unwrap(), broker.node().folder().to_owned());
    (broker, url, move |name: &str| folder.join(name).display().to_string())
}

async fn refused(url: &str) -> Error {
    Consumers::connect(url).start().await.unwrap_err()
}

#[tokio::test]
async fn tls_needs_a_trusted_authority() {
    let (broker, url, file) = secured(TlsClients::Anyone).await;
    let (queue, record) = (name("tls"), Record::new());
    let trusting = format!("{url}?cacertfile={}", file("ca.crt"));
    fill(&trusting, Queue::durable(&queue), &queue, 200).await;
    let running = Consumers::connect(&trusting).consume(recorder(&queue, &record)).start().await.unwrap();
    record.wait_for(200).await;
    let node = broker.node().clone();
    let rows = blocking(move || node.ctl(&["list_connections", "ssl"]).unwrap()).await;
    assert!(rows.lines().count() > 0 && rows.lines().all(|row| row == "true"), "{rows}");
    running.stop(LIMIT).await;
    // The machine does not trust this authority.
    let error = refused(&url).await;
    assert!(
        matches!(&error, Error::Unreachable { reason, .. } if reason.contains("UnknownIssuer")),
        "{error}"
    );
    let error = refused(&format!("{url}?cacertfile=/nowhere/ca.crt")).await;
    assert!(matches!(&error, Error::Tls(reason) if reason.contains("/nowhere/ca.crt")), "{error}");
    blocking(move || drop(broker)).await;
}

#[tokio::test]
async fn broker_that_asks_gets_the_client_certificate() {
    let (broker, url, file) = secured(TlsClients::Certified).await;
    let queue = name("tls-client");
    let trusting = format!("{url}?cacertfile={}", file("ca.crt"));
    let certified = format!("{trusting}&certfile={}&keyfile={}", file("client.crt"), file("client.key"));
    let publishing = Consumers::connect(&certified).queue(Queue::durable(&queue)).start().await.unwrap();
    let publisher = publishing.publisher(PublisherOptions::default());
    publisher.publish("", &queue, &Message::bytes("1")).await.unwrap();
    publishing.stop(LIMIT).await;
    let error = refused(&trusting).await;
    assert!(matches!(&error, Error::Unreachable { .. }), "{error}");
    blocking(move || drop(broker)).await;
}
