//! Enqueue: the store holds exactly the tasks of the call, all of them or none.

pub mod keys;
pub mod straight;

use std::time::Duration;

use windlass_core::{
    Encoding, Error, Name, NewTask, Outcome, Payload, RetryPolicy, Rules, Start, State, Timestamp,
    TraceContext,
};

use super::rig::{Rig, in_queue, keyed, name, of_job, step_of, task};
use crate::harness::Harness;

pub async fn a_new_task_is_ready_with_everything_it_was_given(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let retry = RetryPolicy { base: Duration::from_secs(3), max: Duration::from_mins(1), jitter_percent: 7 };
    let given = NewTask {
        queue: name("täglich"),
        payload: Payload::json(&serde_json::json!({"text": "a\u{0}b", "n": [1, 2.5, null]})).unwrap(),
        priority: -3,
        max_attempts: Some(4),
        retry: Some(retry),
        timeout: Some(Duration::from_millis(1500)),
        job: Some(name("site-7")),
        ..keyed("key é")
    };
    let id = rig.add(given.clone()).await;
    let seen = rig.task(id).await;
    assert_eq!(seen.state, State::Ready);
    assert_eq!((&seen.lane.queue, &seen.lane.kind), (&given.queue, &given.kind));
    assert_eq!((seen.payload, seen.priority), (given.payload.clone(), -3));
    assert_eq!((seen.max_attempts, seen.timeout), (4, given.timeout));
    assert_eq!((seen.job, seen.key.as_deref()), (given.job, Some("key é")));
    assert_eq!((seen.lease, seen.attempt, seen.crashes), (0, 0, 0));
    assert_eq!((seen.due_at, seen.started_at, seen.ended_at, seen.worker), (None, None, None, None));
    assert!(seen.attempts.is_empty() && seen.output.is_none() && seen.error.is_none());
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.retry, claimed.timeout), (Some(retry), given.timeout));
    assert_eq!((claimed.payload, claimed.lane.queue.clone()), (given.payload, name("täglich")));
}

pub async fn bytes_of_every_value_and_of_no_length_are_stored_whole(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for bytes in [Vec::new(), (0..=255).collect::<Vec<u8>>(), vec![0; 100_000]] {
        let id = rig.add(NewTask { payload: Payload::bytes(bytes.clone()), ..task("a") }).await;
        let seen = rig.task(id).await.payload;
        assert_eq!((seen.encoding(), seen.as_bytes()), (Encoding::Bytes, bytes.as_slice()));
    }
}

pub async fn ids_rise_in_the_order_of_enqueue(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut ids = rig.add_many("a", 50).await;
    let hour_ago = harness.now().await.before(Duration::from_hours(1));
    harness.jump_wall(hour_ago).await;
    ids.extend(rig.add_many("a", 50).await);
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

pub async fn names_with_invisible_characters_are_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for letter in ['\u{ad}', '\u{200b}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}'] {
        let bad = Name::stored("name", format!("a{letter}b")).unwrap();
        for refused in [
            NewTask { kind: bad.clone(), ..task("a") },
            NewTask { queue: bad.clone(), ..task("a") },
            NewTask { job: Some(bad.clone()), ..task("a") },
            NewTask { workflow: Some(bad.clone()), ..task("a") },
        ] {
            let answer = rig.store.enqueue(vec![task("a"), refused]).await;
            assert!(matches!(answer, Err(Error::Invalid(_))), "{letter:?}: {answer:?}");
        }
    }
    assert!(rig.all().await.is_empty());
}

pub async fn times_without_a_text_are_refused(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    for ms in [i64::MAX, i64::MIN, 300_000_000_000_000] {
        let task = NewTask { start: Start::At(Timestamp::from_ms(ms)), ..task("a") };
        let answer = rig.store.enqueue(vec![task]).await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{ms} was taken: {answer:?}");
        let text = answer.unwrap_err().to_string();
        assert!(text.contains(Timestamp::RANGE), "{text}");
    }
}

pub async fn a_batch_answers_in_its_order(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let old = rig.add(keyed("old")).await;
    let batch = vec![task("a"), keyed("old"), keyed("new"), in_queue("b", "other")];
    let answers = rig.store.enqueue(batch).await.unwrap();
    assert_eq!(answers.iter().map(|answer| answer.existing).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(answers[1].id, old);
    assert_eq!(rig.task(answers[2].id).await.key.as_deref(), Some("new"));
    assert_eq!(rig.task(answers[3].id).await.lane.queue, name("other"));
}

pub async fn a_batch_keeps_what_each_task_was_given(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let retry = Some(RetryPolicy { base: Duration::from_secs(3), ..RetryPolicy::default() });
    let trace = Some(TraceContext { trace_id: 7, span_id: 8, sampled: true });
    for given in [
        NewTask { timeout: Some(Duration::from_secs(9)), ..task("a") },
        NewTask { retry, ..task("a") },
        NewTask { trace, ..task("a") },
        NewTask { priority: 3, max_attempts: Some(4), ..task("a") },
    ] {
        rig.store.enqueue(vec![given.clone(), given.clone()]).await.unwrap();
        let claimed = worker.claim(2).await;
        assert_eq!(claimed.len(), 2);
        for task in claimed {
            assert_eq!((task.timeout, task.retry, task.trace), (given.timeout, given.retry, given.trace));
            assert_eq!(task.priority, given.priority);
            assert!(given.max_attempts.is_none_or(|most| most == task.max_attempts));
        }
    }
}

pub async fn an_empty_batch_is_no_error(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    assert_eq!(rig.store.enqueue(Vec::new()).await, Ok(Vec::new()));
    assert_eq!(rig.all().await, []);
}

pub async fn a_batch_with_one_bad_task_leaves_nothing(harness: &dyn Harness) {
    let rules = Rules { payload_max_bytes: 100, ..Rules::default() };
    let rig = Rig::with(harness, rules).await;
    let existing = rig.add(keyed("taken")).await;
    let other = |text: &str| NewTask { payload: Payload::json(&text).unwrap(), ..keyed("taken") };
    let bad: Vec<(NewTask, &str)> = vec![
        (NewTask { payload: Payload::bytes(vec![0; 101]), ..task("a") }, "invalid"),
        (NewTask { max_attempts: Some(0), ..task("a") }, "invalid"),
        (NewTask { timeout: Some(Duration::ZERO), ..task("a") }, "invalid"),
        (keyed(&"k".repeat(257)), "invalid"),
        (keyed(""), "invalid"),
        (other("something else"), "key_conflict"),
    ];
    for (task_, code) in bad {
        for place in 0..3 {
            let mut batch = vec![task("a"), keyed("fresh"), task("b")];
            batch.insert(place, task_.clone());
            let error = rig.store.enqueue(batch).await.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
    let ids: Vec<_> = rig.all().await.iter().map(|task| task.id).collect();
    assert_eq!(ids, [existing], "nothing of a refused batch is there");
    let fresh = rig.store.enqueue(vec![keyed("fresh")]).await.unwrap();
    assert!(!fresh[0].existing, "a refused batch takes no key");
}

pub async fn a_batch_over_the_limit_is_refused(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { batch_max: 3, ..Rules::default() }).await;
    assert_eq!(rig.add_many("a", 3).await.len(), 3);
    let error = rig.store.enqueue(vec![task("a"); 4]).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert_eq!(rig.all().await.len(), 3);
}

pub async fn a_task_without_a_number_of_attempts_gets_the_default(harness: &dyn Harness) {
    let rig = Rig::with(harness, Rules { max_attempts: 6, ..Rules::default() }).await;
    let id = rig.add(task("a")).await;
    assert_eq!(rig.task(id).await.max_attempts, 6);
}

pub async fn a_task_carries_its_trace_to_every_attempt(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let trace =
        |n: u64| Some(TraceContext { trace_id: u128::MAX - 1, span_id: n, sampled: n.is_multiple_of(2) });
    for (new, given) in [
        (task("a"), trace(1)),
        (task("a"), None),
        (of_job("j"), trace(2)),
        (step_of("w"), trace(3)),
        (keyed("k"), trace(4)),
        (NewTask { timeout: Some(Duration::from_secs(9)), ..task("a") }, None),
    ] {
        let id = rig.add(NewTask { trace: given, ..new }).await;
        let first = worker.claim_one().await;
        assert_eq!((first.id, first.trace), (id, given));
        worker.end(&first, Outcome::Release).await;
        let second = worker.claim_one().await;
        assert_eq!((second.id, second.trace), (id, given), "also after it was handed back");
        worker.finish(&second).await;
    }
}

pub async fn another_trace_under_the_same_key_is_no_conflict(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    let mut worker = rig.worker().await;
    let traced = |n: u128| {
        let trace = Some(TraceContext { trace_id: n, span_id: 1, sampled: true });
        NewTask { trace, ..keyed("k") }
    };
    let first = rig.add(traced(1)).await;
    let again = rig.store.enqueue(vec![traced(2)]).await.unwrap()[0];
    assert_eq!((again.id, again.existing), (first, true));
    assert_eq!(worker.claim_one().await.trace, traced(1).trace, "the trace of the first call");
}
