-- Dead tasks that are kept long enough. Index: task_dead, in order.
SELECT id, lane FROM task
WHERE ended_at IS NOT NULL AND ended_at <= ?1
ORDER BY ended_at
LIMIT ?2
