SELECT
  id, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, job, workflow, encoding, payload
FROM task
WHERE lane = 1 AND state = 1 AND crashes = 0
ORDER BY priority DESC, ready_seq
LIMIT ?1
