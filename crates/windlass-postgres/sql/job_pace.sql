-- Has the starts of a job's ready tasks noticed: it has a delay from now on. $1 name. Index: task_job; the update goes by the
-- primary key, in the order of the tasks.
WITH pick AS MATERIALIZED (
  SELECT t.id FROM windlass.task AS t WHERE t.job = $1 AND t.state = 1 ORDER BY t.id
)
UPDATE windlass.task AS t
SET paced = true
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
