//! The mixed load of a long run: plain tasks, jobs, workflows, failures, retries, cancellations.

use serde_json::{Value, json};

/// Jobs, each with a limit.
pub(super) const JOBS: usize = 20;
/// The limit of each.
pub(super) const JOB_CONCURRENCY: u32 = 3;
/// Workflows that steps are appended to in turn.
const WORKFLOWS: usize = 50;
/// One task in so many becomes dead at once. It is rare, because dead tasks are kept.
const MISSING_EVERY: usize = 2_000;
/// Scheduled tasks are due this far ahead, and most are cancelled before.
const AHEAD_MS: u64 = 30_000;

/// The task with this number.
pub(super) fn task(number: usize, site: &str) -> Value {
    if number.is_multiple_of(MISSING_EVERY) {
        return json!({"kind": "http", "payload": {"url": format!("http://{site}/missing")}});
    }
    match number % 20 {
        0..=2 => {
            let job = format!("job-{}", number / 20 % JOBS);
            json!({"kind": "sleep", "payload": {"ms": 20}, "job": job})
        }
        3..=5 => {
            let workflow = format!("flow-{}", number / 20 % WORKFLOWS);
            json!({"kind": "echo", "payload": {"n": number}, "workflow": workflow, "on_failure": "skip"})
        }
        6 => {
            let (job, workflow) =
                (format!("job-{}", number / 20 % JOBS), format!("flow-{}", number / 20 % WORKFLOWS));
            let url = format!("http://{site}/flaky");
            json!({"kind": "http", "payload": {"url": url}, "job": job, "workflow": workflow, "on_failure": "skip"})
        }
        7 | 8 => json!({"kind": "http", "payload": {"url": format!("http://{site}/flaky")}}),
        9 => json!({"kind": "echo", "payload": {"n": number}, "delay_ms": AHEAD_MS}),
        // A key is remembered for days, so only few tasks have one.
        10 if number % 200 == 10 => {
            json!({"kind": "echo", "payload": {"n": number}, "key": format!("key-{number}")})
        }
        _ => json!({"kind": "echo", "payload": {"n": number}}),
    }
}

/// Whether the bench cancels the task with this number after its enqueue.
pub(super) fn is_cancelled(number: usize) -> bool {
    number % 20 == 9 && !number.is_multiple_of(MISSING_EVERY) && number % 60 != 9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_of_task_is_in_the_mix() {
        let tasks: Vec<Value> = (0..4_000).map(|number| task(number, "127.0.0.1:1")).collect();
        let having = |name: &str| tasks.iter().filter(|task| task.get(name).is_some()).count();
        for name in ["job", "workflow", "delay_ms", "key"] {
            assert!(having(name) > 0, "{name}");
        }
        let of_kind = |kind: &str| tasks.iter().filter(|task| task["kind"] == kind).count();
        assert!(of_kind("echo") > 2_000 && of_kind("http") > 300 && of_kind("sleep") > 300);
        let cancelled: Vec<usize> = (0..4_000).filter(|number| is_cancelled(*number)).collect();
        assert!(cancelled.len() > 50);
        assert!(
            cancelled.iter().all(|number| tasks[*number].get("delay_ms").is_some()),
            "only what lies ahead"
        );
    }
}
