-- A few of the tasks that have a job's room. $1 name, $2 how many. Index: task_job.
SELECT t.id FROM windlass.task AS t WHERE t.job = $1 AND t.state IN (1, 2) ORDER BY t.state DESC, t.id LIMIT $2
