//! NO-STRANDED: a task that no worker can take uses no room.

use e2e::{postgres::Place, up::Up};

use super::{assert_at_rest, ids_of, json_of, limit};

/// As many as the limit: they would use all of it if they counted.
const UNTAKEN: &str = "3";

fn up(place: &Place) -> Up {
    Up::start(place.command(["up", "--listen", "127.0.0.1:0", "--slots", "4"]).unwrap()).unwrap()
}

/// A command that waits for tasks to end in success.
#[track_caller]
fn assert_done(place: &Place, up: &Up, arguments: &[&str]) {
    let said = place.say(arguments.iter().copied().chain(["--server", &up.address])).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
}

const SERVED: [&str; 7] = ["enqueue", "echo", "--payload", "1", "--job", "j", "--wait"];

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_kind_without_a_worker_take_no_room() {
    let place = Place::shared().unwrap().patient();
    let up = up(&place);
    limit(&place, "j", 3);
    json_of(&place, &["enqueue", "nobody", "--job", "j", "--count", UNTAKEN]);
    assert_done(&place, &up, &SERVED);
    assert_eq!(json_of(&place, &["jobs", "show", "j"])["held"], 3, "they wait outside");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_paused_queue_take_no_room_until_it_is_resumed() {
    let place = Place::shared().unwrap().patient();
    let up = up(&place);
    limit(&place, "j", 3);
    json_of(&place, &["queues", "pause", "slow", "--create"]);
    let arguments = ["enqueue", "echo", "--queue", "slow", "--job", "j", "--count", UNTAKEN];
    let paused = ids_of(&json_of(&place, &arguments)).unwrap();
    assert_done(&place, &up, &SERVED);
    assert_eq!(json_of(&place, &["jobs", "show", "j"])["held"], 3, "they wait outside");
    json_of(&place, &["queues", "resume", "slow"]);
    let wait: Vec<_> = ["tasks", "wait"].into_iter().chain(paused.iter().map(String::as_str)).collect();
    assert_done(&place, &up, &wait);
    assert_at_rest(&place, "j");
}
