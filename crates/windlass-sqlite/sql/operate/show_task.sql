-- One task for display. Index: primary keys of task and lane.
-- ?2 says whether payload, output and log are read.
SELECT
  task.id, task.state, task.lane, lane.queue, lane.kind, task.priority, task.encoding,
  CASE WHEN ?2 THEN task.payload END,
  task.job, task.workflow, task.key, task.lease, task.attempt, task.max_attempts, task.crashes, task.timeout_ms,
  coalesce(task.due_at, task.start_at), task.claimed_at, task.ended_at, task.worker, task.progress, NULL, NULL, task.error, task.cancel,
  CASE WHEN ?2 THEN task.log END, 0
FROM task JOIN lane ON lane.id = task.lane
WHERE task.id = ?1
