//! NO-STRANDED: what nobody can take keeps nobody's place.

use e2e::postgres::Place;

use super::{assert_at_rest, ids_of, json_of, limit};

/// Tasks that nobody can take fill the limit, if they were counted.
const UNTAKEN: &str = "3";

/// A task of the job that can be taken has ended: the command waits for it.
#[track_caller]
fn assert_runs(place: &Place) {
    let said = place.say(["enqueue", "echo", "--payload", "1", "--job", "j", "--wait"]).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_kind_that_nobody_handles_take_no_room() {
    let place = Place::shared().unwrap().patient();
    let _worker = place.worker(4).await.unwrap();
    limit(&place, "j", 3);
    json_of(&place, &["enqueue", "nobody", "--job", "j", "--count", UNTAKEN]);
    assert_runs(&place);
    assert_eq!(json_of(&place, &["jobs", "show", "j"])["held"], 3, "they wait outside");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_paused_queue_take_no_room_until_it_is_resumed() {
    let place = Place::shared().unwrap().patient();
    let _worker = place.worker(4).await.unwrap();
    limit(&place, "j", 3);
    json_of(&place, &["queues", "pause", "slow"]);
    let arguments = ["enqueue", "echo", "--queue", "slow", "--job", "j", "--count", UNTAKEN];
    let paused = ids_of(&json_of(&place, &arguments)).unwrap();
    assert_runs(&place);
    assert_eq!(json_of(&place, &["jobs", "show", "j"])["held"], 3, "they wait outside");
    json_of(&place, &["queues", "resume", "slow"]);
    let wait: Vec<_> = ["tasks", "wait"].into_iter().chain(paused.iter().map(String::as_str)).collect();
    let said = place.say(wait).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_at_rest(&place, "j");
}
