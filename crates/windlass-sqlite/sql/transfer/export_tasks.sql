-- Unfinished and dead tasks for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT
  id, lane, state, priority, ready_seq, coalesce(due_at, start_at), ended_at, lease, attempt, max_attempts, crashes,
  worker, claim_no, claimed_at, timeout_ms, retry, job, workflow, step, on_failure, key, cancel, progress, error, log,
  encoding, payload, trace
FROM task
WHERE id > ?1
ORDER BY id
LIMIT ?2 OFFSET ?3
