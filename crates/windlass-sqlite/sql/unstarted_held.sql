-- Held tasks of a job up to an id. Index: task_held, in order.
SELECT id FROM task
WHERE job = ?1 AND state = 3 AND id <= ?2
ORDER BY lane, priority DESC, id
LIMIT ?3
