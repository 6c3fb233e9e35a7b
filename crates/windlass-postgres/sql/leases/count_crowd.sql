-- How many tasks a dead worker held, counted to two: one task alone, or several. The count is kept, because a task that
-- is left of several was not alone. Index: task_running. $1 worker.
UPDATE windlass.worker AS w
SET crowd = (SELECT count(*) FROM (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = $1 LIMIT 2) AS held)
WHERE w.id = $1
RETURNING w.crowd
