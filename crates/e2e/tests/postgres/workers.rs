//! Workers listed and changed from another process, through the database alone.

use e2e::{
    postgres::{Place, until},
    process::START_LIMIT,
    up::Up,
};
use serde_json::Value;

use crate::{enqueue, target, until_open};

fn listed(place: &Place, id: &str) -> anyhow::Result<Value> {
    let said = place.say(["workers", "ls", "--json"])?;
    let workers: Value = serde_json::from_str(&said.stdout)?;
    let mut found = workers["workers"].as_array().into_iter().flatten();
    Ok(found.find(|worker| worker["worker_id"] == id).cloned().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_sets_slots_and_shows_a_dead_worker_as_stale() {
    let place = Place::shared().unwrap().with("WINDLASS_LOG_LEVEL", "info");
    let target = target().await;
    target.hold();
    let mut worker = place.worker(2).await.unwrap();
    let id = format!("w{}", place.registration(worker.pid()).unwrap().unwrap());
    enqueue(&place, &target, 6).await;
    until_open(&target, 2).await;
    until("its heartbeat told", || Ok(listed(&place, &id)?["in_flight"] == 2)).await.unwrap();
    let seen = listed(&place, &id).unwrap();
    assert_eq!(
        (&seen["state"], &seen["max_capacity"], &seen["available_capacity"]),
        (&"live".into(), &2.into(), &0.into())
    );
    assert!(seen["memory_usage"].as_f64().unwrap() > 0.0, "{seen}");

    assert_eq!(place.say(["workers", "set", &id, "--slots", "5"]).unwrap().code, Some(0));
    worker
        .wait_for(START_LIMIT, |line| line.contains("the number of slots was changed").then_some(()))
        .unwrap();
    until_open(&target, 5).await;
    assert_eq!(place.say(["workers", "set", "w987654", "--slots", "5"]).unwrap().code, Some(3));

    worker.kill().unwrap();
    until("it is seen as stale", || Ok(listed(&place, &id)?["state"] == "stale")).await.unwrap();
    let refused = place.say(["workers", "set", &id, "--slots", "5"]).unwrap();
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let stale = listed(&place, &id).unwrap();
    assert!(stale["seen_ago_ms"].as_u64().unwrap() > 0 && stale["live"] == false, "{stale}");
    target.release();
}

/// Three workers with handlers of uneven length share evenly, and each reports its free capacity; both as the
/// API shows them.
#[tokio::test(flavor = "multi_thread")]
async fn three_workers_with_uneven_handlers_share_evenly() {
    const TASKS: usize = 900;
    const SLOTS: u32 = 10;
    let place = Place::shared().unwrap();
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(place.worker(SLOTS).await.unwrap());
    }
    // Every third task takes ten times as long as the others.
    let lines = (0..TASKS).map(|n| {
        let ms = if n % 3 == 0 { 50 } else { 5 };
        format!("{{\"kind\":\"sleep\",\"payload\":{{\"ms\":{ms}}}}}")
    });
    let tasks = lines.collect::<Vec<_>>().join("\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), tasks).unwrap();
    let said = place.say(["enqueue", "--from", &file.path().display().to_string()]).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    // The server has a worker too, which serves none of these tasks.
    let up =
        Up::start(place.command(["up", "--listen", "127.0.0.1:0", "--queues", "others"]).unwrap()).unwrap();
    let api = up.api();
    let list = async |path: &str, key: &str| -> Vec<Value> {
        api.get(path).await.unwrap().body[key].as_array().cloned().unwrap_or_default()
    };
    let tasks = e2e::until(async || {
        let done = list("/v1/tasks?state=done&limit=1000", "tasks").await;
        if done.len() == TASKS { Ok(done) } else { Err(format!("{} are done", done.len())) }
    })
    .await
    .unwrap();

    let ids: Vec<String> = workers
        .iter()
        .map(|worker| format!("w{}", place.registration(worker.pid()).unwrap().unwrap()))
        .collect();
    let third = TASKS as f64 / 3.0;
    for id in &ids {
        let share = tasks.iter().filter(|task| task["worker"] == id.as_str()).count() as f64 / third;
        assert!((0.85..=1.15).contains(&share), "{id} ran {share} of its third");
    }
    // Idle workers report that all of their slots are free.
    e2e::until(async || {
        let seen = list("/v1/workers", "workers").await;
        let is_free = |worker: &&Value| {
            worker["available_capacity"] == SLOTS
                && worker["max_capacity"] == SLOTS
                && worker["in_flight"] == 0
                && worker["reason"] == ""
                && worker["memory_usage"].as_f64().is_some_and(|usage| usage > 0.0 && usage <= 1.0)
        };
        let free = seen.iter().filter(is_free).filter_map(|worker| worker["worker_id"].as_str());
        let free: Vec<&str> = free.filter(|id| ids.iter().any(|known| known == id)).collect();
        if free.len() == ids.len() { Ok(()) } else { Err(format!("{free:?} of {seen:?}")) }
    })
    .await
    .unwrap();
}
