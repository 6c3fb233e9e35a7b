-- The first suspect of a crash in a lane with so many crashes. Index: task_suspect, in order.
SELECT
  id, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, job, workflow,
  key IS NOT NULL AS keyed, encoding, payload, step, trace
FROM task
WHERE lane = ?1 AND state = 1 AND crashes > 0 AND crashes BETWEEN ?2 AND ?3
ORDER BY priority DESC, ready_seq
LIMIT 1
