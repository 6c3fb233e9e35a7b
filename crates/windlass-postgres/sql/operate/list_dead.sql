-- All dead tasks between two ids, newest first; only if there are few enough to be sorted. Parameters as in
-- list_task.sql. Index: task_dead.
SELECT {task_record: whole = $12}
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.state = 6 AND t.id < $1 AND t.id >= $2
  AND {listed: task = t}
ORDER BY t.id DESC
LIMIT $8
