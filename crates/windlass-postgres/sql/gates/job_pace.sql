-- Says whether starts of a job's tasks are recorded: its delay may have been set or removed. When the job gets a delay,
-- each task that runs already counts as started, once. $1 name, $2 whether it has a delay. Answers the states of the
-- tasks that this changed. Index: task_job; the update goes by the primary key, in the order of the tasks. They are
-- sorted apart: otherwise the server could read all of the primary key for its order.
WITH taken AS MATERIALIZED (
  -- One state at a time: with a list of them the server reads all tasks of the job.
  SELECT t.id FROM windlass.task AS t WHERE t.job = $1 AND t.state = 1
  UNION ALL
  SELECT t.id FROM windlass.task AS t WHERE t.job = $1 AND t.state = 2 AND $2
), pick AS MATERIALIZED (
  SELECT taken.id FROM taken ORDER BY taken.id
)
UPDATE windlass.task AS t
SET paced = CASE WHEN $2 THEN true END
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND (t.state + 0 = 1 OR (t.state + 0 = 2 AND $2)) AND (t.paced IS TRUE) <> $2
RETURNING t.state
