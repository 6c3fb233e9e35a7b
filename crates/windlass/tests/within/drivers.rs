//! `client.enqueue(task).within(&mut tx)` with tokio-postgres and with sqlx.

use sqlx_core::{connection::Connection as _, query::query};
use sqlx_postgres::{PgConnection, Postgres};
use windlass::{Client, Error, Payload, TaskState, postgres::Within, task::Enqueued};

use crate::place::{Place, greet};

async fn enqueue(client: &Client, tx: &mut impl Within, key: &str) -> Enqueued {
    client.enqueue(greet("Ada")).job("tenant-7").key(key).within(tx).await.unwrap()
}

/// The task is stored as the client would have enqueued it alone. No worker serves its lane, so its job holds
/// it.
async fn assert_arrived(client: &Client, enqueued: Enqueued, key: &str) {
    let record = client.task(enqueued.id).await.unwrap().unwrap();
    assert_eq!((record.state, record.max_attempts), (TaskState::Held, 5));
    assert_eq!((record.lane.queue.as_str(), record.lane.kind.as_str()), ("mail", "greet"));
    assert_eq!(record.payload, Payload::json(&greet("Ada")).unwrap());
    let again = client.enqueue(greet("Ada")).key(key).await.unwrap();
    assert_eq!(again, Enqueued::existing(enqueued.id));
    let other = client.enqueue(greet("Bob")).key(key).await.unwrap_err();
    assert_eq!(other, Error::KeyConflict { key: key.to_owned(), existing: enqueued.id });
}

#[tokio::test]
async fn a_transaction_of_tokio_postgres_brings_its_task() {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let mut db = place.caller().await;
    let mut tx = db.transaction().await.unwrap();
    let undone = enqueue(&client, &mut tx, "k").await;
    tx.rollback().await.unwrap();
    assert_eq!(client.task(undone.id).await.unwrap(), None);

    let mut tx = db.transaction().await.unwrap();
    let enqueued = enqueue(&client, &mut tx, "k").await;
    tx.commit().await.unwrap();
    assert_arrived(&client, enqueued, "k").await;

    // A transaction that was started with a plain BEGIN.
    db.batch_execute("BEGIN").await.unwrap();
    let by_hand = enqueue(&client, &mut db, "by hand").await;
    assert_eq!(client.task(by_hand.id).await.unwrap(), None);
    db.batch_execute("COMMIT").await.unwrap();
    assert_arrived(&client, by_hand, "by hand").await;
}

#[tokio::test]
async fn a_transaction_of_sqlx_brings_its_task() {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let mut db = PgConnection::connect(&place.url).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let undone = enqueue(&client, &mut tx, "k").await;
    tx.rollback().await.unwrap();
    assert_eq!(client.task(undone.id).await.unwrap(), None);

    let mut tx = db.begin().await.unwrap();
    let enqueued = enqueue(&client, &mut tx, "k").await;
    // The same statement a second time, now prepared; and through the inner connection.
    let again = enqueue(&client, &mut *tx, "k").await;
    assert_eq!(again, Enqueued::existing(enqueued.id));
    tx.commit().await.unwrap();
    assert_arrived(&client, enqueued, "k").await;

    query::<Postgres>("BEGIN").execute(&mut db).await.unwrap();
    let by_hand = enqueue(&client, &mut db, "by hand").await;
    query::<Postgres>("COMMIT").execute(&mut db).await.unwrap();
    assert_arrived(&client, by_hand, "by hand").await;
}

#[tokio::test]
async fn both_drivers_tell_a_conflict_and_a_missing_schema_alike() {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let taken = client.enqueue(greet("Ada")).key("k").await.unwrap().id;
    let conflict = Error::KeyConflict { key: "k".to_owned(), existing: taken };

    let mut db = place.caller().await;
    let mut tx = db.transaction().await.unwrap();
    assert_eq!(client.enqueue(greet("Bob")).key("k").within(&mut tx).await, Err(conflict.clone()));
    let aborted = client.enqueue(greet("Bob")).within(&mut tx).await.unwrap_err();
    tx.rollback().await.unwrap();
    let mut sqlx_db = PgConnection::connect(&place.url).await.unwrap();
    let mut tx = sqlx_db.begin().await.unwrap();
    assert_eq!(client.enqueue(greet("Bob")).key("k").within(&mut tx).await, Err(conflict));
    assert_eq!(client.enqueue(greet("Bob")).within(&mut tx).await, Err(aborted));
    tx.rollback().await.unwrap();

    place.psql(&format!("DROP SCHEMA {} CASCADE", place.schema)).await;
    let mut tx = db.transaction().await.unwrap();
    let missing = client.enqueue(greet("Bob")).within(&mut tx).await.unwrap_err();
    assert!(missing.to_string().contains("windlass migrate"), "{missing}");
    let mut tx = sqlx_db.begin().await.unwrap();
    assert_eq!(client.enqueue(greet("Bob")).within(&mut tx).await, Err(missing));
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn within_refuses_a_client_of_another_store() {
    let place = Place::new();
    let client = Client::new(windlass::testing::store().await.unwrap());
    let mut db = place.caller().await;
    let mut tx = db.transaction().await.unwrap();
    let error = client.enqueue(greet("Ada")).within(&mut tx).await.unwrap_err();
    assert!(matches!(&error, Error::Unsupported(text) if text.contains("PostgreSQL")), "{error}");
}

#[tokio::test]
async fn a_bad_setting_is_reported_and_the_transaction_continues() {
    let place = Place::new();
    let client = Client::new(place.store().await);
    let mut db = place.caller().await;
    let mut tx = db.transaction().await.unwrap();
    let error = client.enqueue(greet("Ada")).job(" x").within(&mut tx).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let error = client.enqueue(greet("Ada")).workflow("").within(&mut tx).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    client.enqueue(greet("Ada")).within(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
}
