-- Moves a task that was cancelled before it ran (again) into the history. Index: primary key.
INSERT INTO history (
  id, lane, state, priority, ran, started_at, ended_at, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, error, log, output_encoding, output, encoding, payload
)
SELECT
  id, lane, 7, priority, 0, claimed_at, ?1, lease, attempt, max_attempts, worker, timeout_ms,
  job, workflow, key, progress, ?2, log, NULL, NULL, encoding, payload
FROM task
WHERE id = ?3 AND state IN (0, 1, 3, 4)
