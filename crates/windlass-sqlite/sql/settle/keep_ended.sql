-- Copies one task that its attempt ended into the history. Index: primary key.
INSERT INTO history (
  id, lane, state, priority, ran, started_at, ended_at, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, error, log, output_encoding, output, encoding, payload
)
SELECT
  id, lane, ?1, priority, 1, claimed_at, ?2, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, ?3, log, ?4, ?5, encoding, payload
FROM task
WHERE id = ?6 AND lease = ?7 AND worker = ?8 AND state = 2
