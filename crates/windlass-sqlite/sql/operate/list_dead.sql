-- All dead tasks below an id, newest first; only if few enough to sort. Index: task_dead.
SELECT
  task.id, task.state, task.lane, lane.queue, lane.kind, task.priority, task.encoding, task.payload,
  task.job, task.workflow, task.key, task.lease, task.attempt, task.max_attempts, task.crashes, task.timeout_ms,
  coalesce(task.due_at, task.start_at), task.claimed_at, task.ended_at, task.worker, task.progress, NULL, NULL, task.error, task.cancel,
  task.log, 0
FROM task INDEXED BY task_dead CROSS JOIN lane ON lane.id = task.lane
WHERE task.ended_at IS NOT NULL AND task.id < ?1 AND task.id >= ?2
  AND (?3 IS NULL OR lane.queue = ?3)
  AND (?4 IS NULL OR lane.kind = ?4)
  AND (?5 IS NULL OR task.job = ?5)
  AND (?6 IS NULL OR task.workflow = ?6)
ORDER BY task.id DESC
LIMIT ?7
