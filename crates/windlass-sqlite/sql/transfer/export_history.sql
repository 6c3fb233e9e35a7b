-- Done and cancelled tasks for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT
  id, lane, state, priority, ran, started_at, ended_at, lease, attempt, max_attempts, worker, timeout_ms, job, workflow,
  key, progress, error, log, output_encoding, output, encoding, payload
FROM history
WHERE id > ?1
ORDER BY id
LIMIT ?2 OFFSET ?3
