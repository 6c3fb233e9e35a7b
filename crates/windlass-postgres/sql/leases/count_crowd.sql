-- How many tasks a dead worker held, counted to two: alone or not. Kept, because the rest of a crowd is still the rest of a
-- crowd. Index: task_running. $1 worker.
UPDATE windlass.worker AS w
SET crowd = (SELECT count(*) FROM (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = $1 LIMIT 2) AS held)
WHERE w.id = $1
RETURNING w.crowd
