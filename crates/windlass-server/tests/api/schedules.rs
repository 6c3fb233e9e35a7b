//! Recurring tasks over the API. The clock stands at 2027-01-31T09:30:00Z, a Sunday.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use windlass_core::{Payload, Store as _};

use crate::harness::{Api, Setup};

fn nightly() -> Value {
    json!({"cron": "0 3 * * *", "tz": "Europe/Berlin", "task": {"kind": "report", "payload": {"to": "ada"}}})
}

#[tokio::test]
async fn a_schedule_is_made_shown_listed_and_removed() {
    let api = Api::start().await;
    assert_eq!(api.get("/v1/schedules").await.json(), json!({"schedules": []}));
    let put = api.put("/v1/schedules/nightly%2Fa", nightly()).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let mut view = put.json();
    let warning = "no live worker handles kind \"report\"; the task waits until one does";
    assert_eq!(view.as_object_mut().unwrap().remove("warnings"), Some(json!([warning])));
    let expected = json!({
        "name": "nightly/a", "cron": "0 3 * * *", "words": "every day at 03:00", "tz": "Europe/Berlin", "missed": "once",
        "paused": false,
        "next": ["2027-02-01T02:00:00.000Z", "2027-02-02T02:00:00.000Z", "2027-02-03T02:00:00.000Z"],
        "next_local": ["2027-02-01T03:00:00+01:00", "2027-02-02T03:00:00+01:00", "2027-02-03T03:00:00+01:00"],
        "task": {"kind": "report", "queue": "default", "payload": {"to": "ada"}, "payload_encoding": "json", "priority": 0},
    });
    assert_eq!(view, expected);
    assert_eq!(api.get("/v1/schedules/nightly%2Fa").await.json(), expected);
    assert_eq!(api.get("/v1/schedules").await.json(), json!({"schedules": [expected]}));
    let gone = api.delete("/v1/schedules/nightly%2Fa").await;
    assert_eq!((gone.status, gone.json()), (200, json!({"removed": "nightly/a"})));
    assert_eq!(api.delete("/v1/schedules/nightly%2Fa").await.status, 404);
}

#[tokio::test]
async fn every_field_of_the_task_is_kept() {
    let api = Api::start().await;
    let task = json!({"kind": "k", "payload_base64": "AP8=", "queue": "q", "job": "j", "workflow": "w", "on_failure": "skip",
        "priority": -2, "max_attempts": 3, "timeout_ms": 1500, "retry": {"base_ms": 20}});
    let view =
        api.put("/v1/schedules/s", json!({"cron": "@daily", "missed": "skip", "task": task})).await.json();
    assert_eq!((&view["tz"], &view["missed"]), (&json!("UTC"), &json!("skip")));
    for (field, value) in [
        ("queue", json!("q")),
        ("job", json!("j")),
        ("workflow", json!("w")),
        ("on_failure", json!("skip")),
        ("priority", json!(-2)),
        ("max_attempts", json!(3)),
        ("timeout_ms", json!(1500)),
        ("payload_encoding", json!("bytes")),
    ] {
        assert_eq!(view["task"][field], value, "{field}");
    }
    let run = api.post_nothing("/v1/schedules/s/run").await.json();
    let task = api.store.task(run["id"].as_str().unwrap().parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.payload, Payload::bytes([0, 255]));
    assert_eq!((task.key, task.timeout), (None, Some(Duration::from_millis(1_500))));
}

#[tokio::test]
async fn a_schedule_tells_its_last_task_and_what_has_passed() {
    let api = Api::start().await;
    let cron = json!({"cron": "*/5 * * * *", "task": {"kind": "k"}});
    api.put("/v1/schedules/s", cron).await;
    assert_eq!(api.get("/v1/schedules/s").await.json()["passed"], Value::Null);
    api.clock.advance(Duration::from_mins(11) + Duration::from_secs(30));
    let overdue = json!({
        "count": 2, "at_least": false, "first_at": "2027-01-31T09:35:00.000Z", "last_at": "2027-01-31T09:40:00.000Z",
        "overdue": true, "sentence": "2 ticks have passed without a task: no worker fires this schedule"
    });
    assert_eq!(api.get("/v1/schedules/s").await.json()["passed"], overdue);
    assert_eq!(api.get("/v1/schedules").await.json()["schedules"][0]["passed"], overdue);
    let due = api.store.schedules().due(1).await.unwrap();
    let ticked = windlass::inside::fire(api.store.schedules(), &due.due[0], due.now).await.unwrap();
    let ticked = ticked.task.unwrap().id.to_string();
    let told = api.get("/v1/schedules/s").await.json();
    assert_eq!((&told["last_task"], &told["last_task_state"]), (&json!(ticked), &json!("ready")));
    assert_eq!(
        (&told["last_at"], &told["passed"]["overdue"]),
        (&json!("2027-01-31T09:35:00.000Z"), &json!(false))
    );
    assert_eq!(
        (&told["passed"]["count"], &told["passed"]["first_at"]),
        (&json!(1), &json!("2027-01-31T09:40:00.000Z"))
    );
    api.post_nothing("/v1/schedules/s/pause").await;
    api.clock.advance(Duration::from_hours(1));
    assert_eq!(api.get("/v1/schedules/s").await.json()["passed"], Value::Null, "it is meant to pass");
}

#[tokio::test]
async fn ticks_that_have_passed_are_counted_up_to_a_bound() {
    let api = Api::start().await;
    api.put("/v1/schedules/s", json!({"cron": "* * * * * *", "task": {"kind": "k"}})).await;
    api.clock.advance(Duration::from_hours(24));
    let passed = api.get("/v1/schedules/s").await.json()["passed"].clone();
    assert_eq!((&passed["count"], &passed["at_least"]), (&json!(1_000), &json!(true)));
    let sentence = "at least 1000 ticks have passed without a task: no worker fires this schedule";
    assert_eq!(passed["sentence"], sentence);
}

#[tokio::test]
async fn pause_and_resume_say_what_comes_next() {
    let api = Api::start().await;
    api.put("/v1/schedules/s", json!({"cron": "@hourly", "task": {"kind": "k"}})).await;
    let paused = api.post_nothing("/v1/schedules/s/pause").await.json();
    assert_eq!((&paused["paused"], &paused["next"]), (&json!(true), &json!([])));
    api.clock.advance(Duration::from_hours(3));
    let resumed = api.post_nothing("/v1/schedules/s/resume").await.json();
    assert_eq!(
        (&resumed["paused"], &resumed["next"][0]),
        (&json!(false), &json!("2027-01-31T13:00:00.000Z"))
    );
}

#[tokio::test]
async fn run_enqueues_now_and_leaves_the_ticks_alone() {
    let api = Api::start().await;
    let before = api.put("/v1/schedules/s", json!({"cron": "@hourly", "task": {"kind": "k"}})).await.json();
    let run = api.post_nothing("/v1/schedules/s/run").await;
    assert_eq!(run.status, 201, "{}", run.text());
    let id = run.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["state"], "ready");
    assert_eq!(api.get("/v1/schedules/s").await.json()["next"], before["next"]);
}

#[tokio::test]
async fn an_invalid_schedule_is_refused_and_not_stored() {
    let api = Api::start().await;
    for (body, parts) in [
        (json!({"cron": "61 * * * *", "task": {"kind": "k"}}), ["minute", "0 to 59"]),
        (json!({"cron": "* * * JUNE *", "task": {"kind": "k"}}), ["month", "1 to 12 or JAN to DEC"]),
        (json!({"cron": "0 0 30 2 *", "task": {"kind": "k"}}), ["0 0 30 2 *", "never fires"]),
        (json!({"cron": "@daily", "tz": "Mars/Olympus", "task": {"kind": "k"}}), ["tz", "Europe/Berlin"]),
        (json!({"cron": "@daily", "missed": "twice", "task": {"kind": "k"}}), ["once", "skip"]),
        (json!({"cron": "@daily", "task": {"kind": ""}}), ["task", "kind"]),
        (json!({"cron": "@daily", "task": {"kind": "k", "key": "x"}}), ["key", "each tick"]),
        (json!({"cron": "@daily", "task": {"kind": "k", "delay_ms": 5}}), ["start", "its tick"]),
        (json!({"cron": "@daily", "task": {"kind": "k", "on_failure": "skip"}}), ["on_failure", "workflow"]),
        (json!({"cron": "@daily", "task": {"kind": "k", "que": "x"}}), ["unknown field", "que"]),
        (json!({"cron": "@daily", "kind": "k"}), ["unknown field", "kind"]),
        (json!({"cron": "@daily"}), ["missing field", "task"]),
    ] {
        let answer = api.put("/v1/schedules/s", body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(parts.iter().all(|part| message.contains(part)), "{body}: {message}");
    }
    assert_eq!(api.get("/v1/schedules").await.json(), json!({"schedules": []}));
    assert_eq!(api.put("/v1/schedules/%20s", nightly()).await.status, 400);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let api = Api::start().await;
    for verb in ["pause", "resume", "run"] {
        let answer = api.post_nothing(&format!("/v1/schedules/s/{verb}")).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("not_found")), "{verb}");
    }
    let answer = api.get("/v1/schedules/s").await;
    assert_eq!(answer.json()["error"]["message"], "schedule \"s\" not found");
    assert_eq!(api.post_nothing("/v1/schedules/s").await.status, 405);
}

#[tokio::test]
async fn secrets_of_a_payload_are_not_shown() {
    let operations =
        |operations: windlass_server::Operations| operations.redact_json("report", |_| json!("removed"));
    let api = Api::with(Setup { operations, ..Setup::default() }).await;
    assert_eq!(api.put("/v1/schedules/s", nightly()).await.json()["task"]["payload"], "removed");
    let run = api.post_nothing("/v1/schedules/s/run").await.json();
    let task = api.store.task(run["id"].as_str().unwrap().parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.payload.as_bytes(), br#"{"to":"ada"}"#);
}

#[tokio::test]
async fn the_worker_of_this_process_is_told() {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let operations = |operations: windlass_server::Operations| {
        operations.on_schedules_changed(|| {
            TOLD.fetch_add(1, Ordering::SeqCst);
        })
    };
    let api = Api::with(Setup { operations, ..Setup::default() }).await;
    api.put("/v1/schedules/s", nightly()).await;
    assert_eq!(TOLD.load(Ordering::SeqCst), 1);
    api.put("/v1/schedules/s", json!({"cron": "61 * * * *", "task": {"kind": "k"}})).await;
    api.get("/v1/schedules/s").await;
    assert_eq!(TOLD.load(Ordering::SeqCst), 1);
    api.post_nothing("/v1/schedules/s/resume").await;
    assert_eq!(TOLD.load(Ordering::SeqCst), 2);
}
