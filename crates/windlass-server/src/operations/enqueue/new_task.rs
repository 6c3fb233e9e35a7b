//! From a request to a task, with every check of the server.

use base64::{Engine, prelude::BASE64_STANDARD};
use windlass_core::{
    Name, NewTask, Payload, RetryPolicy, Rules, Start,
    task::{DEFAULT_QUEUE, Key},
};

use crate::api::{EnqueueRequest, ErrorCode, ErrorDetail, KeyConflict, RetryDelays};
use crate::operations::{Result, duration};

/// Longest duration in a request: ten years. A longer one is a mistake of units.
pub const DURATION_MAX_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1_000;

/// The payload of a request that brings none.
const NO_PAYLOAD: &str = "{}";

/// Checks a request and makes the task of it.
pub(super) fn new_task(request: EnqueueRequest, rules: &Rules) -> Result<NewTask> {
    let kind = Name::new("kind", &request.kind)?;
    let queue = Name::new("queue", request.queue.as_deref().unwrap_or(DEFAULT_QUEUE))?;
    let optional = |what: &str, text: Option<&String>| text.map(|text| Name::new(what, text)).transpose();
    let job = optional("job", request.job.as_ref())?;
    let workflow = optional("workflow", request.workflow.as_ref())?;
    let start = start(&request)?;
    let key = key(request.key, request.ignore_key_conflict, request.key_conflict)?;
    let timeout = request.timeout_ms.map(|ms| duration("timeout_ms", ms)).transpose()?;
    let retry = request.retry.map(|delays| retry(delays, &rules.retry)).transpose()?;
    let payload = payload(request.payload.map(|raw| raw.get().to_owned()), request.payload_base64, rules)?;
    let task = NewTask {
        kind,
        queue,
        payload,
        priority: request.priority.unwrap_or(0),
        start,
        key,
        max_attempts: request.max_attempts,
        retry,
        timeout,
        job,
        job_concurrency: request.job_concurrency,
        workflow,
        on_failure: request.on_failure,
        trace: None,
    };
    task.check(rules)?;
    Ok(task)
}

fn payload(json: Option<String>, base64: Option<String>, rules: &Rules) -> Result<Payload> {
    match (json, base64) {
        (Some(_), Some(_)) => {
            Err(ErrorDetail::invalid("payload and payload_base64 are both given; choose one"))
        }
        (Some(json), None) => {
            within(json.len(), rules)?;
            Ok(Payload::json_text(json)?)
        }
        (None, Some(text)) => {
            // Four letters encode three bytes, the last group perhaps only one: the size is known before
            // decoding.
            within((text.len() / 4 * 3).saturating_sub(2), rules)?;
            let bytes = BASE64_STANDARD
                .decode(text)
                .map_err(|error| ErrorDetail::invalid(format!("payload_base64 is not base64: {error}")))?;
            within(bytes.len(), rules)?;
            Ok(Payload::bytes(bytes))
        }
        (None, None) => Ok(Payload::json_text(NO_PAYLOAD)?),
    }
}

fn within(bytes: usize, rules: &Rules) -> Result<()> {
    if bytes <= rules.payload_max_bytes {
        return Ok(());
    }
    let message = format!("payload is {bytes} bytes; payload_max_bytes is {}", rules.payload_max_bytes);
    Err(ErrorDetail::new(ErrorCode::TooLarge, message)
        .hint("store large things elsewhere and pass a reference, or raise payload_max_bytes"))
}

fn start(request: &EnqueueRequest) -> Result<Start> {
    match (request.run_at, request.delay_ms) {
        (Some(_), Some(_)) => Err(ErrorDetail::invalid("run_at and delay_ms are both given; choose one")),
        (Some(at), None) => Ok(Start::At(at)),
        (None, Some(0) | None) => Ok(Start::Now),
        (None, Some(ms)) => Ok(Start::In(duration("delay_ms", ms)?)),
    }
}

fn key(text: Option<String>, ignore: Option<bool>, earlier: Option<KeyConflict>) -> Result<Option<Key>> {
    if ignore.is_some() && earlier.is_some() {
        return Err(ErrorDetail::invalid(
            "ignore_key_conflict and key_conflict are both given; choose the first",
        ));
    }
    let name = if earlier.is_some() { "key_conflict" } else { "ignore_key_conflict" };
    let ignore = ignore.or_else(|| earlier.map(|earlier| earlier == KeyConflict::Ignore));
    match (text, ignore) {
        (None, Some(_)) => Err(ErrorDetail::invalid(format!("{name} is given without key"))),
        (None, None) => Ok(None),
        (Some(text), ignore) => Ok(Some(Key { text, ignore_conflict: ignore.unwrap_or(false) })),
    }
}

fn retry(delays: RetryDelays, usual: &RetryPolicy) -> Result<RetryPolicy> {
    let base = delays.base_ms.map(|ms| duration("retry.base_ms", ms)).transpose()?.unwrap_or(usual.base);
    let given_max = delays.max_ms.map(|ms| duration("retry.max_ms", ms)).transpose()?;
    if given_max.is_some_and(|max| max < base) {
        return Err(ErrorDetail::invalid("retry.max_ms is shorter than retry.base_ms"));
    }
    // A base above the default longest delay raises that delay: the caller asked for it.
    let max = given_max.unwrap_or(usual.max.max(base));
    Ok(RetryPolicy { base, max, jitter_percent: usual.jitter_percent })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_core::Encoding;

    use super::*;

    fn made(text: &str) -> Result<NewTask> {
        new_task(serde_json::from_str(text).unwrap(), &Rules::default())
    }

    fn refused(text: &str) -> String {
        made(text).unwrap_err().message
    }

    #[test]
    fn a_kind_alone_is_a_task_with_the_defaults_and_an_empty_object() {
        let task = made(r#"{"kind":"echo"}"#).unwrap();
        assert_eq!(task, NewTask::new("echo", Payload::json_text("{}").unwrap()).unwrap());
    }

    #[test]
    fn every_field_reaches_the_task() {
        let task = made(
            r#"{"kind":"k","payload":[1],"queue":"q","job":"j","job_concurrency":3,"workflow":"w","on_failure":"skip","priority":-3,"delay_ms":5,
                "key":"x","key_conflict":"ignore","max_attempts":2,"timeout_ms":7,
                "retry":{"base_ms":20,"max_ms":30}}"#,
        )
        .unwrap();
        assert_eq!(task.payload.as_bytes(), b"[1]");
        assert_eq!((task.kind.as_str(), task.queue.as_str(), task.priority), ("k", "q", -3));
        assert_eq!((task.job.unwrap().as_str(), task.job_concurrency), ("j", Some(3)));
        assert_eq!(task.workflow.unwrap().as_str(), "w");
        assert_eq!(task.on_failure, Some(windlass_core::OnFailure::Skip));
        assert_eq!(task.start, Start::In(Duration::from_millis(5)));
        assert_eq!(task.key, Some(Key { text: "x".into(), ignore_conflict: true }));
        assert_eq!((task.max_attempts, task.timeout), (Some(2), Some(Duration::from_millis(7))));
        let retry = task.retry.unwrap();
        assert_eq!((retry.base, retry.max), (Duration::from_millis(20), Duration::from_millis(30)));
    }

    #[test]
    fn bytes_come_in_as_base64() {
        let task = made(r#"{"kind":"k","payload_base64":"AP8="}"#).unwrap();
        assert_eq!((task.payload.encoding(), task.payload.as_bytes()), (Encoding::Bytes, &[0, 255][..]));
    }

    #[test]
    fn a_wrong_field_of_a_task_is_refused_by_name() {
        for (text, field) in [
            (r#"{"kind":""}"#, "kind"),
            (r#"{"kind":"k","queue":" q"}"#, "queue"),
            (r#"{"kind":"k","job":""}"#, "job"),
            (r#"{"kind":"k","workflow":"a\u0000"}"#, "workflow"),
            (r#"{"kind":"k","on_failure":"skip"}"#, "on_failure"),
            (r#"{"kind":"k","job_concurrency":3}"#, "job_concurrency"),
            (r#"{"kind":"k","job":"j","job_concurrency":0}"#, "job_concurrency"),
            (r#"{"kind":"k","payload":1,"payload_base64":""}"#, "payload_base64"),
            (r#"{"kind":"k","payload_base64":"%%%%"}"#, "payload_base64"),
            (r#"{"kind":"k","run_at":"2030-01-01T00:00:00Z","delay_ms":1}"#, "delay_ms"),
            (r#"{"kind":"k","delay_ms":99999999999999}"#, "delay_ms"),
            (r#"{"kind":"k","timeout_ms":0}"#, "timeout"),
            (r#"{"kind":"k","max_attempts":0}"#, "max_attempts"),
            (r#"{"kind":"k","key":""}"#, "key"),
            (r#"{"kind":"k","ignore_key_conflict":true}"#, "ignore_key_conflict is given without key"),
            (r#"{"kind":"k","key_conflict":"ignore"}"#, "key_conflict is given without key"),
            (
                r#"{"kind":"k","key":"x","ignore_key_conflict":true,"key_conflict":"refuse"}"#,
                "choose the first",
            ),
            (r#"{"kind":"k","retry":{"base_ms":2,"max_ms":1}}"#, "retry.max_ms"),
        ] {
            assert!(refused(text).contains(field), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn a_payload_over_the_limit_is_too_large_in_either_form() {
        let rules = Rules { payload_max_bytes: 8, ..Rules::default() };
        for (text, fits) in [
            (r#"{"kind":"k","payload":"123456"}"#, true),
            (r#"{"kind":"k","payload":"1234567"}"#, false),
            (r#"{"kind":"k","payload_base64":"MTIzNDU2Nzg="}"#, true),
            (r#"{"kind":"k","payload_base64":"MTIzNDU2Nzg5"}"#, false),
        ] {
            let made = new_task(serde_json::from_str(text).unwrap(), &rules);
            assert_eq!(made.is_ok(), fits, "{text}");
            assert!(made.is_ok() || made.unwrap_err().code == ErrorCode::TooLarge, "{text}");
        }
    }
}
