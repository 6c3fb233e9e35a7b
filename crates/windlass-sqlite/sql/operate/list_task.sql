-- Tasks between two ids, newest first; the caller bounds the range. Index: primary keys, in order.
-- ?12 says whether payload, output and log are read.
SELECT
  task.id, task.state, task.lane, lane.queue, lane.kind, task.priority, task.encoding,
  CASE WHEN ?12 THEN task.payload END,
  task.job, task.workflow, task.key, task.lease, task.attempt, task.max_attempts, task.crashes, task.timeout_ms,
  coalesce(task.due_at, task.start_at), task.claimed_at, task.ended_at, task.worker, task.progress, NULL, NULL, task.error, task.cancel,
  CASE WHEN ?12 THEN task.log END, 0
FROM task CROSS JOIN lane ON lane.id = task.lane
WHERE task.id < ?1 AND task.id >= ?2
  AND (?3 IS NULL OR task.state = ?3)
  AND (?4 IS NULL OR lane.queue = ?4)
  AND (?5 IS NULL OR lane.kind = ?5)
  AND (?6 IS NULL OR task.job = ?6)
  AND (?7 IS NULL OR task.workflow = ?7)
  AND (?9 IS NULL OR task.worker = ?9)
  AND (?10 IS NULL OR task.key = ?10)
  AND (?11 IS NULL OR substr(task.error, 1, length(?11)) = ?11)
ORDER BY task.id DESC
LIMIT ?8
