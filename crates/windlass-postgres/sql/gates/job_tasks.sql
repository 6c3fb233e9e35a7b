-- Tasks of a job that have not started, or those that run. $1 name, $2 whether those that run, $3 up to this task, $4
-- how many at most. Index: task_job.
SELECT t.id
FROM windlass.task AS t
WHERE t.job = $1 AND t.state = ANY (CASE WHEN $2 THEN '{2}'::smallint[] ELSE '{0,1,3,4}'::smallint[] END)
  AND t.state <> 6 AND t.id <= $3
ORDER BY t.job
LIMIT $4
