-- Done and cancelled tasks, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT
  id, lane, state, priority, ran, started_at, ended_at, lease, attempt, max_attempts, worker, timeout_ms, job, workflow,
  key, progress, error, log, output_encoding, output, encoding, payload
FROM history
WHERE id > ?1
ORDER BY id
LIMIT ?2 OFFSET ?3
