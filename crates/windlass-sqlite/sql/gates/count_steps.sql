-- Unfinished steps of a workflow, up to a number. Index: task_step, in order.
SELECT count(*) FROM (
  SELECT 1 FROM task WHERE workflow = ?1 AND ended_at IS NULL ORDER BY step LIMIT ?2
)
