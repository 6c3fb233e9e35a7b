//! Tasks and workers as they are shown.

use ring::digest::{SHA256, digest};
use serde_json::value::RawValue;
use windlass_core::{AttemptRecord, Encoding, Payload, TaskRecord, Timestamp, WorkerRecord, repeat};

use super::Operations;
use crate::api::{AttemptView, EncodingView, TaskView, WorkerState, WorkerView};

impl Operations {
    /// A task without the secrets of its payload.
    pub(crate) fn redacted(&self, task: TaskRecord) -> TaskRecord {
        TaskRecord { payload: (self.redact)(&task.lane.kind, task.payload), ..task }
    }

    /// A task as it is shown: secrets removed, bytes as size and digest.
    pub(super) fn view(&self, task: TaskRecord) -> TaskView {
        let (payload, payload_encoding) = shown(&(self.redact)(&task.lane.kind, task.payload));
        let (output, output_encoding) = task.output.as_ref().map(shown).unzip();
        TaskView {
            id: task.id,
            state: task.state,
            kind: task.lane.kind.clone(),
            queue: task.lane.queue.clone(),
            priority: task.priority,
            job: task.job,
            workflow: task.workflow,
            repeats: repeat::repeated(task.key.as_deref()),
            repeated_by: None,
            key: task.key,
            payload,
            payload_encoding,
            output,
            output_encoding,
            error: task.error,
            progress: task.progress,
            cancel_requested: task.cancel_requested,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            crashes: task.crashes,
            lease: task.lease,
            worker: task.worker.map(|worker| worker.to_string()),
            timeout_ms: task.timeout.map(|timeout| timeout.as_millis() as u64),
            enqueued_at: task.id.enqueued_at(),
            due_at: task.due_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            attempts: task.attempts.into_iter().map(attempt).collect(),
        }
    }
}

fn attempt(record: AttemptRecord) -> AttemptView {
    AttemptView {
        attempt: record.attempt,
        lease: record.lease,
        worker: record.worker.map(|worker| worker.to_string()),
        started_at: record.started_at,
        ended_at: record.ended_at,
        result: record.result,
        error: record.error,
    }
}

pub(super) fn worker(record: WorkerRecord, now: Timestamp) -> WorkerView {
    let state = match (record.live, record.ended, record.draining) {
        (true, _, false) => WorkerState::Live,
        (true, _, true) => WorkerState::Draining,
        (false, false, _) => WorkerState::Stale,
        (false, true, _) => WorkerState::Gone,
    };
    WorkerView {
        worker_id: record.id.to_string(),
        state,
        host: record.host,
        pid: record.pid,
        version: record.version,
        kinds: record.kinds,
        queues: record.queues,
        max_capacity: record.slots,
        available_capacity: record.available,
        in_flight: record.in_flight,
        memory_usage: record.memory_usage,
        factor: record.factor,
        reason: record.reason,
        counts: record.counts.total(),
        draining: record.draining,
        live: record.live,
        seen_ago_ms: now.since(record.renewed_at).as_millis() as u64,
        registered_at: record.registered_at,
        renewed_at: record.renewed_at,
    }
}

/// JSON as it is, anything else as size and digest. A damaged row may contain text that claims to be JSON and
/// is not. It is shown as size and digest, so that one row never breaks a list.
pub(super) fn shown(payload: &Payload) -> (Box<RawValue>, EncodingView) {
    let json = match payload.encoding() {
        Encoding::Json => std::str::from_utf8(payload.as_bytes())
            .ok()
            .and_then(|text| RawValue::from_string(text.to_owned()).ok()),
        Encoding::Bytes => None,
    };
    match json {
        Some(json) => (json, EncodingView::Json),
        None => (size_and_digest(payload.as_bytes()), EncodingView::Bytes),
    }
}

fn size_and_digest(bytes: &[u8]) -> Box<RawValue> {
    use std::fmt::Write;
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    let text = format!("{{\"bytes\":{},\"digest\":\"sha256:{hex}\"}}", bytes.len());
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_size_and_digest_only() {
        let (shown, encoding) = shown(&Payload::bytes(*b"abc"));
        assert_eq!(encoding, EncodingView::Bytes);
        assert_eq!(
            shown.get(),
            r#"{"bytes":3,"digest":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}"#
        );
    }

    #[test]
    fn a_damaged_row_is_shown_as_bytes() {
        let (_, encoding) = shown(&Payload::from_stored(Encoding::Json, b"{".to_vec()));
        assert_eq!(encoding, EncodingView::Bytes);
    }
}
