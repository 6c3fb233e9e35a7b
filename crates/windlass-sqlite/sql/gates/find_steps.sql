-- Unfinished steps of a workflow up to a step number, the last first. Index: task_step, backwards.
SELECT id FROM task
WHERE workflow = ?1 AND ended_at IS NULL AND step <= ?2
ORDER BY step DESC
LIMIT ?3
