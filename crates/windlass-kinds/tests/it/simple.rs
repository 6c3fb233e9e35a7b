//! `sleep`, `echo`, and the list of all kinds.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use windlass::{Context, Outcome, Payload, handler::RawHandler};
use windlass_kinds::{Echo, HttpOptions, Sleep, builtin, check_payload};

use crate::support::{call, dead, task};

#[tokio::test(start_paused = true)]
async fn sleep_takes_the_given_time_without_an_output() {
    for (payload, expected) in [
        (json!({"ms": 250}), Duration::from_millis(250)),
        (json!({"seconds": 1.5}), Duration::from_millis(1500)),
        (json!({"seconds": 3600}), Duration::from_hours(1)),
        (json!({"ms": 0}), Duration::ZERO),
    ] {
        let started = Instant::now();
        assert_eq!(call(&Sleep, &payload).await, Outcome::Done(None));
        // Paused time is exact to the timer's resolution of one millisecond.
        let over = started.elapsed().checked_sub(expected).unwrap();
        assert!(over <= Duration::from_millis(1), "{payload}: {over:?} over");
    }
}

#[tokio::test]
async fn sleep_refuses_invalid_payloads() {
    for payload in [
        json!(5),
        json!({}),
        json!({"ms": -1}),
        json!({"ms": 1.5}),
        json!({"ms": "1"}),
        json!({"seconds": -0.5}),
        json!({"seconds": 1e300}),
        json!({"ms": 1, "seconds": 1}),
        json!({"minutes": 1}),
        json!({"ms": u64::MAX}),
    ] {
        assert!(check_payload("sleep", &payload).is_err(), "{payload}");
        assert!(dead(call(&Sleep, &payload).await).starts_with("sleep: "), "{payload}");
    }
    assert!(check_payload("sleep", &json!({"minutes": 1})).unwrap_err().contains("\"minutes\""));
}

#[tokio::test]
async fn echo_outputs_its_payload() {
    for payload in [Payload::json(&json!({"a": [1, null]})).unwrap(), Payload::bytes([0, 255])] {
        let outcome = Echo.call(Context::detached(task(payload.clone()))).await;
        assert_eq!(outcome, Outcome::Done(Some(payload)));
    }
}

#[tokio::test]
async fn every_kind_is_listed_with_its_handler() {
    let kinds = builtin(HttpOptions::default()).unwrap();
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["http", "sleep", "echo"]);
    let payload = Payload::json(&json!({"ms": 0})).unwrap();
    let outcome = kinds[1].1.call(Context::detached(task(payload))).await;
    assert_eq!(outcome, Outcome::Done(None));
    assert!(check_payload("http", &json!({"ms": 0})).is_err());
    assert!(check_payload("somebody_elses", &json!({"ms": 0})).is_ok());
}
