-- A few of the tasks that have a job's room, those that run first. $1 name, $2 how many. Index: task_job; the sums keep
-- the server from reading all tasks in the order of the primary key.
SELECT o.id
FROM (
  (SELECT t.id, 0 AS place FROM windlass.task AS t WHERE t.job = $1 AND t.state = 2 ORDER BY t.id + 0 LIMIT $2)
  UNION ALL
  (SELECT t.id, 1 FROM windlass.task AS t WHERE t.job = $1 AND t.state = 1 ORDER BY t.id + 0 LIMIT $2)
) AS o
ORDER BY o.place, o.id
LIMIT $2
