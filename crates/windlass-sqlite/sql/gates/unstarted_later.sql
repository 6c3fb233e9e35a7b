-- Scheduled and waiting tasks of a job up to an id. Index: task_later, in order.
SELECT id FROM task
WHERE job = ?1 AND state IN (0, 4) AND id <= ?2
ORDER BY state, id
LIMIT ?3
