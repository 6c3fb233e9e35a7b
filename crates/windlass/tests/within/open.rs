//! `windlass::open("postgres://…")`.

use windlass::{Client, Error, OpenOptions};
use windlass_scratch::{Cluster, ClusterOptions};

use crate::place::greet;

/// A server of its own, because the schema has the usual name.
#[tokio::test]
async fn an_address_of_postgresql_opens_the_schema_that_migrate_made() {
    let cluster = Cluster::start(&ClusterOptions::new().without_fsync()).unwrap();
    let url = cluster.url();
    let missing = windlass::open(&url).await.err().unwrap();
    assert!(
        matches!(&missing, Error::Conflict(text) if text.contains("`windlass migrate --store URL`")
            && text.contains("windlass::open_with(url, OpenOptions::new().migrate(true))")),
        "{missing}"
    );

    let location = windlass::postgres::Location::parse(&url).unwrap();
    windlass::postgres::migrate(&location, &windlass::postgres::Options::default()).await.unwrap();
    let store = windlass::open(&url).await.unwrap();
    assert_eq!(store.schema(), Some("windlass"));
    let client = Client::new(store);
    let id = client.enqueue(greet("Ada")).await.unwrap().id;
    assert!(client.task(id).await.unwrap().is_some());

    let other = || OpenOptions::new().schema("other");
    let missing = windlass::open_with(&url, other()).await.err().unwrap().to_string();
    assert!(missing.contains("OpenOptions::new().schema(\"other\").migrate(true)"), "{missing}");
    assert!(missing.contains("--schema other"), "{missing}");
    let made = windlass::open_with(&url, other().migrate(true)).await.unwrap();
    assert_eq!((made.schema(), made.info().await.unwrap().created), (Some("other"), true));
    assert!(windlass::open_with(&url, other()).await.is_ok(), "it is there from then on");
    let error = windlass::open_with(&url, OpenOptions::new().schema("No")).await.err().unwrap();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

#[tokio::test]
async fn an_address_that_leads_nowhere_is_shown_without_its_password() {
    let error = windlass::open("postgres://me:secret@127.0.0.1:1/app").await.err().unwrap();
    assert!(error.is_retryable() && !error.to_string().contains("secret"), "{error}");
    let error = windlass::open("postgres://me:secret@host/app?nonsense=1").await.err().unwrap();
    assert!(matches!(error, Error::Invalid(_)) && !error.to_string().contains("secret"), "{error}");
}
