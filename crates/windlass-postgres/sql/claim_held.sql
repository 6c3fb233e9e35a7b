-- How many tasks a worker holds, counted to two, and how many suspects among them. Index: task_running,
-- task_running_suspect. $1 worker.
SELECT
  (SELECT count(*) FROM (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.worker = $1 LIMIT 2) AS held),
  (SELECT count(*) FROM windlass.task AS t WHERE t.state = 2 AND t.crashes > 0 AND t.worker = $1)
