//! Several `windlass up` on one schema.

use std::collections::BTreeSet;

use e2e::{
    postgres::{Place, judge, until},
    up::Up,
};
use serde_json::json;

use crate::{target, until_open};

const TASKS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_a_schema_and_one_continues_alone() {
    let place = Place::shared().unwrap();
    let target = target().await;
    // There is no schema: each of them tries to create it.
    place.ask(&format!("DROP SCHEMA {} CASCADE", place.schema())).unwrap();
    let start = || place.command(["up", "--listen", "127.0.0.1:0", "--slots", "4", "--migrate"]).unwrap();
    let (first, second) = (e2e::process::Process::start(start()), e2e::process::Process::start(start()));
    let mut first = Up::wait_for_address(first.unwrap()).unwrap();
    let second = Up::wait_for_address(second.unwrap()).unwrap();
    assert_ne!(first.address, second.address);
    for up in [&first, &second] {
        assert_eq!(up.api().get("/readyz").await.unwrap().status, 200, "{}", up.process.transcript());
        until("it is registered", || place.is_live(up.process.pid())).await.unwrap();
    }

    target.hold();
    let task = json!({"kind": "http", "payload": {"url": target.url()}});
    let batch = json!({"tasks": vec![task.clone(); TASKS]});
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for up in [&first, &second] {
        ids.extend(up.api().post("/v1/tasks", &batch).await.unwrap().ids());
    }
    assert_eq!(ids.len(), 2 * TASKS);
    for id in &ids {
        for up in [&first, &second] {
            let seen = up.api().get(&format!("/v1/tasks/{id}")).await.unwrap();
            assert_eq!((seen.status, seen.body["id"].as_str()), (200, Some(id.as_str())));
        }
    }
    until_open(&target, 8).await;
    first.process.kill().unwrap();
    target.release();

    // The other one continues to serve, and the tasks of the first are done.
    let api = second.api();
    ids.extend(api.post("/v1/tasks", &task).await.unwrap().ids());
    let judged = judge(&place, &ids, &target).await.unwrap();
    assert!(judged.crashes > 0, "the first had nothing to leave");
    assert_eq!(api.get("/readyz").await.unwrap().status, 200);
    for id in &ids {
        let seen = api.get(&format!("/v1/tasks/{id}")).await.unwrap();
        assert_eq!(seen.body["state"], "done", "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_the_server_of_a_database() {
    let place = Place::shared().unwrap();
    let say = |listen: &str, arguments: &[&str]| {
        let mut command = place.command(arguments.iter().copied()).unwrap();
        command.env("WINDLASS_LISTEN", listen);
        e2e::process::run(command).unwrap()
    };
    let up = Up::start(place.command(["up", "--listen", "127.0.0.1:0", "--slots", "4"]).unwrap()).unwrap();
    until("it is registered", || place.is_live(up.process.pid())).await.unwrap();
    let listen = up.address.strip_prefix("http://").unwrap().to_owned();
    let said = say(&listen, &["doctor"]);
    assert!(said.stdout.contains(&format!("{} (version", up.address)), "{said:?}");
    assert!(!said.stdout.contains("no worker runs"), "{said:?}");
    assert_eq!(say(&listen, &["health"]).code, Some(0));

    // A server of another store at that address does not count.
    let folder = tempfile::tempdir().unwrap();
    let other = Up::on(&folder.path().join("windlass.db"), [""; 0]).unwrap();
    let listen = other.address.strip_prefix("http://").unwrap().to_owned();
    let said = say(&listen, &["doctor"]);
    assert!(said.stdout.contains(&format!("none for this store at {}", other.address)), "{said:?}");
    assert!(said.stdout.contains("--server") && !said.stdout.contains("no worker runs"), "{said:?}");
    assert_eq!(say(&listen, &["health"]).code, Some(5));
}
