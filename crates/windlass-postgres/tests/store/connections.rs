//! How many connections a store has, and what happens when there are none.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass_conformance::cases::rig::{Rig, in_queue, keyed, name, task};
use windlass_core::{
    NewTask, NewWorker, Outcome, Source, Store, WorkerReport,
    store::{Filter, Retention},
};
use windlass_postgres::{Location, OpenError, Options, PostgresStore};
use windlass_scratch::{Cluster, ClusterOptions};

use crate::{
    place::{Place, tasks},
    support::{self, PostgresHarness},
    wait::until,
};

/// The sessions of one program by purpose, as the server lists them.
async fn purposes(harness: &PostgresHarness, program: &str) -> BTreeMap<String, i64> {
    let text =
        "SELECT application_name, count(*) FROM pg_stat_activity WHERE application_name LIKE $1 GROUP BY 1";
    let rows = harness.client().await.query(text, &[&format!("{program} %")]).await.unwrap();
    let purpose = |name: &str| name.strip_prefix(program).unwrap().trim().to_owned();
    rows.iter().map(|row| (purpose(row.get(0)), row.get(1))).collect()
}

#[tokio::test]
async fn a_busy_store_has_no_more_connections_than_it_says() {
    let program = support::schema_name();
    let url = format!("{}?application_name={program}", support::url());
    let harness = PostgresHarness::new().through(&url);
    let rig = Rig::open(&harness).await;
    let mut worker = rig.worker().await;
    rig.store.close().await.unwrap();
    worker.renew().await.unwrap();
    let store = Arc::clone(&worker.store);
    until("it listens", async || store.hears_of_new_tasks()).await;
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let id = store.enqueue(vec![task("a"), keyed(&format!("{number}"))]).await.unwrap()[0].id;
                store.task(id).await.unwrap().unwrap();
                store.tasks(&Filter::default(), None, 10).await.unwrap();
            })
        })
        .collect();
    for number in 0..10 {
        let claimed = worker.claim(5).await;
        let ends = claimed.into_iter().map(|task| (task, Outcome::Done(None))).collect();
        worker.settle(ends).await;
        store.promote_due(10).await.unwrap();
        store.expire_workers(10).await.unwrap();
        store.retain(&Retention::default()).await.unwrap();
        worker.renew().await.unwrap();
        assert!(number < 10);
    }
    for call in calls {
        call.await.unwrap();
    }
    let expected = [
        ("claims", 1),
        ("clients", 3),
        ("duties", 1),
        ("gates", 1),
        ("listen", 1),
        ("renewals", 1),
        ("settlements", 1),
    ];
    let expected = expected.map(|(purpose, n)| (purpose.to_owned(), n)).into();
    // The server lists closed sessions for a moment longer.
    until("the store has no more connections than it says", async || {
        purposes(&harness, &program).await == expected
    })
    .await;
}

#[tokio::test]
async fn a_full_server_refuses_at_once_and_an_open_store_goes_on() {
    let options = ClusterOptions::new().without_fsync().max_connections(20);
    let cluster = Cluster::start(&options).unwrap();
    let place = Place::at(&cluster.url());
    let store = place.make().await;
    let worker = NewWorker {
        host: "host".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        kinds: vec![name("a")],
        queues: Vec::new(),
        slots: 1,
        lease_ttl: Duration::from_mins(5),
    };
    let worker = store.register(worker).await.unwrap();
    let mut others = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&cluster.url(), tokio_postgres::NoTls).await
    {
        tokio::spawn(connection);
        others.push(client);
    }
    assert!(others.len() > 3, "there was room");
    let error = place.open().await.unwrap_err();
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("raise max_connections"), "{error}");
    for _ in 0..5 {
        store.renew(worker, WorkerReport::default()).await.unwrap();
    }
    store.enqueue(tasks("a", 1)).await.unwrap();
    // A worker that is registered can claim and settle.
    store.promote_due(1).await.unwrap();
    // A call that has no connection yet is refused, and can be tried again.
    let refused = store.retire(worker).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    drop(others);
    until("there is room again", async || store.retire(worker).await.is_ok()).await;
    place.open().await.unwrap();
}

#[tokio::test]
async fn a_pool_of_one_serves_all_callers_in_turn() {
    let harness = PostgresHarness::new().with(|options| Options { pool_size: 1, ..options });
    let rig = Rig::open(&harness).await;
    let mut calls = Vec::new();
    for number in 0..60 {
        let store = Arc::clone(&rig.store);
        calls.push(tokio::spawn(async move {
            // Each in a queue of its own, so that a lane is made as well.
            let queue = format!("q{}", number % 20);
            let with_key = NewTask { queue: name(&queue), ..keyed(&format!("{number}")) };
            let ids = store.enqueue(vec![in_queue("a", &queue)]).await.unwrap();
            store.enqueue(vec![with_key, in_queue("b", &queue)]).await.unwrap();
            store.task(ids[0].id).await.unwrap().unwrap();
            store.tasks(&Filter::default(), None, 5).await.unwrap();
            store.lane_records().await.unwrap();
            store.cancel(&[ids[0].id], "no").await.unwrap().remove(0).result.unwrap();
            store.ended(&[ids[0].id], Duration::from_secs(1)).await.unwrap();
            store.info().await.unwrap();
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(rig.store.lane_records().await.unwrap().len(), 40);
    rig.assert_sound().await;
}

/// A store whose server cannot be reached says so at once, without the password.
#[tokio::test]
async fn an_unreachable_server_is_named() {
    let location = Location::parse("postgres://me:s3cret@127.0.0.1:1/db").unwrap();
    let error = PostgresStore::open(&location, Options::default()).await.unwrap_err().to_string();
    assert!(error.contains("postgres://me:***@127.0.0.1:1/db") && !error.contains("s3cret"), "{error}");
}
