//! The server has no free connection.

use std::collections::BTreeSet;

use e2e::postgres::{Place, Wire, judge, until};
use windlass_scratch::ClusterOptions;

use crate::{enqueue, target};

#[tokio::test(flavor = "multi_thread")]
async fn without_free_connections_only_new_processes_fail() {
    let options = ClusterOptions::new().without_fsync().max_connections(30);
    // Leases are compared with every third renewal, so that all connections exist soon.
    let place = Place::alone(&options).unwrap().with("WINDLASS_HEARTBEAT_MS", "100");
    let target = target().await;
    let mut worker = place.worker(4).await.unwrap();
    let mut ids: BTreeSet<String> = enqueue(&place, &target, 3).await;
    judge(&place, &ids, &target).await.unwrap();
    let count = |purpose: &str| {
        let name = place.sessions_for(purpose);
        place.count(&format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"))
    };
    for purpose in ["claims", "settlements", "renewals", "duties", "listen", "clients"] {
        until("the worker has its connections", || Ok(count(purpose)? >= 1)).await.unwrap();
    }

    let mut others = Vec::new();
    let refusal = loop {
        match Wire::connect(&place) {
            Ok(wire) => others.push(wire),
            Err(error) => break error.to_string(),
        }
        assert!(others.len() < 30, "the server has no end of connections");
    };
    assert!(refusal.contains("53300"), "{refusal}");

    let registration = place.registration(worker.pid()).unwrap().unwrap();
    for arguments in [&["worker"][..], &["up", "--listen", "127.0.0.1:0"], &["enqueue", "echo"]] {
        let said = place.say(arguments.iter().copied()).unwrap();
        assert_eq!(said.code, Some(5), "{said:?}");
        assert!(said.stderr.contains("max_connections"), "it says what to do: {said:?}");
        assert_eq!(said.stderr.matches("error: ").count(), 1, "{said:?}");
    }
    // The superuser has reserved connections.
    let renewals =
        format!("SELECT renewed_at - registered_at FROM windlass.worker WHERE id = {registration}");
    let before = place.count(&renewals).unwrap();
    let beyond = before + place.lease_ttl().as_millis() as u64 + 500;
    let task = format!(
        "SELECT id FROM windlass.enqueue(kind => 'http', payload => '{{\"url\": \"{}\"}}')",
        target.url()
    );
    for _ in 0..5 {
        ids.insert(place.ask(&task).unwrap());
    }
    until("it renews its lease beyond its time", || Ok(place.count(&renewals)? > beyond)).await.unwrap();
    let judged = judge_with_room(&place, &ids, &target, others).await;
    assert_eq!(judged.crashes, 0);
    assert_eq!(place.registration(worker.pid()).unwrap(), Some(registration), "it lost its lease");
    assert!(worker.ended().unwrap().is_none());
    assert!(!worker.transcript().contains("lease lost"), "{}", worker.transcript());
}

/// The enqueued tasks are done while no connection is free; the judge itself needs one.
async fn judge_with_room(
    place: &Place,
    ids: &BTreeSet<String>,
    target: &e2e::target::Target,
    others: Vec<Wire>,
) -> e2e::postgres::Judged {
    let unfinished = || Ok(place.count("SELECT count(*) FROM windlass.task")? == 0);
    until("the tasks are done", unfinished).await.unwrap();
    drop(others);
    until("there is a connection", || Ok(Wire::connect(place).is_ok())).await.unwrap();
    judge(place, ids, target).await.unwrap()
}
