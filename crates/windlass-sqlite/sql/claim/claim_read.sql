-- The first tasks of a lane's ready line. Index: task_ready, in order.
SELECT
  id, priority, ready_seq, lease, attempt, max_attempts, crashes, timeout_ms, retry, job, workflow,
  key IS NOT NULL AS keyed, encoding, payload, step, trace, suspect
FROM task
WHERE lane = ?1 AND state = 1 AND crashes < 2
ORDER BY priority DESC, ready_seq
LIMIT ?2
