-- Unfinished and dead tasks, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary
-- key.
SELECT
  id, lane, state, priority, ready_seq, coalesce(due_at, start_at), ended_at, lease, attempt, max_attempts, crashes,
  worker, claim_no, claimed_at, timeout_ms, retry, job, workflow, step, on_failure, key, cancel, progress, error, log,
  encoding, payload, trace
FROM task
WHERE id > ?1
ORDER BY id
LIMIT ?2 OFFSET ?3
