-- Dead tasks past their retention that block no workflow. Index: task_dead, in order; workflow_blocked.
SELECT id, lane FROM task
WHERE ended_at IS NOT NULL AND ended_at <= ?1
  AND NOT EXISTS (SELECT 1 FROM workflow WHERE blocked_by = task.id)
ORDER BY ended_at
LIMIT ?2
