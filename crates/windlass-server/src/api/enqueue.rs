//! Enqueue: one task or a batch.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_core::{OnFailure, TaskId, Timestamp};

/// One task to enqueue. Also one line of `enqueue --from`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a task as an object")]
pub struct EnqueueRequest {
    /// Which handler runs it.
    pub kind: String,
    /// Its payload as JSON; `{}` if neither this nor `payload_base64` is given.
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// Its payload as bytes in base64 (standard alphabet, with padding).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Which queue it waits in; `default` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The job it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The limit of its job if the store does not know that job yet; a job that is there keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_concurrency: Option<u32>,
    /// The workflow it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// What a failure means for the rest of its workflow. The first task of the workflow decides; `block` if
    /// that task does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Higher first; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Not before this time. Not together with `delay_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// Not before this long from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Idempotency key: two tasks with the same queue and key are one task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Answer with the existing task if the key belongs to a task with another kind or payload, instead of
    /// refusing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_key_conflict: Option<bool>,
    /// The older form of `ignore_key_conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_conflict: Option<KeyConflict>,
    /// Attempts granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Delays between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryDelays>,
}

/// What to do when a key belongs to a task with another kind or payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyConflict {
    /// Refuse with `key_conflict`.
    #[default]
    Refuse,
    /// Answer with the existing task.
    Ignore,
}

/// Delays between attempts: `base_ms × 2ⁿ`, at most `max_ms`; what is absent is the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryDelays {
    /// Delay after the first failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<u64>,
    /// Longest delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
}

/// The answer to one enqueue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnqueueResponse {
    /// The task, new or already there.
    pub id: TaskId,
    /// Whether a task with this key was already there.
    pub existing: bool,
    /// Whether its job is cancelled, and the task with it: at once, or when its turn in its workflow comes.
    #[serde(default)]
    pub cancelled: bool,
    /// What the caller should know, for example that no live worker has this kind.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Several tasks to enqueue, all or none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The tasks.
    pub tasks: Vec<EnqueueRequest>,
    /// Only check the tasks: nothing is added, and the answer names none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// One task of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnqueuedTask {
    /// The task, new or already there.
    pub id: TaskId,
    /// Whether a task with this key was already there.
    pub existing: bool,
    /// Whether its job is cancelled, and with it the task: at once, or when its turn in its workflow comes.
    #[serde(default)]
    pub cancelled: bool,
}

/// The answer to a batch, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchResponse {
    /// The tasks.
    pub tasks: Vec<EnqueuedTask>,
    /// What the caller should know; each warning once for the whole batch.
    #[serde(default)]
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explicit_null_payload_is_not_an_absent_one() {
        let null: EnqueueRequest = serde_json::from_str(r#"{"kind":"a","payload":null}"#).unwrap();
        assert_eq!(null.payload.unwrap().get(), "null");
        let absent: EnqueueRequest = serde_json::from_str(r#"{"kind":"a"}"#).unwrap();
        assert!(absent.payload.is_none());
    }

    #[test]
    fn numbers_of_a_payload_keep_every_digit() {
        let text = r#"{"kind":"a","payload":{"n":123456789012345678901234567890.10}}"#;
        let request: EnqueueRequest = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
    }
}
