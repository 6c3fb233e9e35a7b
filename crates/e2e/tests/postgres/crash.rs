//! POISON-CONTAINED: after one `kill -9` all running tasks run again at once, with all slots.

use e2e::postgres::{Place, until};

#[tokio::test(flavor = "multi_thread")]
async fn after_one_kill_all_tasks_run_at_once_on_postgresql() {
    let n = if crate::is_long() { 1_000 } else { 100 };
    let place = Place::shared().unwrap();
    let mut first = place.worker(1_000).await.unwrap();
    let number = n.to_string();
    let said = place.say(["enqueue", "sleep", "--payload", r#"{"ms":600000}"#, "--count", &number]).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let running = |crashes: u32| {
        let sql =
            format!("SELECT count(*) FROM {}.task WHERE state = 2 AND crashes = {crashes}", place.schema());
        place.count(&sql)
    };
    until("all run", || Ok(running(0)? == n)).await.unwrap();
    first.kill().unwrap();
    let _second = place.worker(1_000).await.unwrap();
    until("all run again at the same time", || Ok(running(1)? == n)).await.unwrap();
}
