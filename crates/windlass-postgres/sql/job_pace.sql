-- Has the starts of a job's ready tasks noticed: it has a delay from now on. $1 name. Index: task_job; the update goes by the
-- primary key, in the order of the tasks. They are sorted apart: the order of the primary key would be had by reading all of it.
WITH ready AS MATERIALIZED (
  SELECT t.id FROM windlass.task AS t WHERE t.job = $1 AND t.state = 1
), pick AS MATERIALIZED (
  SELECT ready.id FROM ready ORDER BY ready.id
)
UPDATE windlass.task AS t
SET paced = true
FROM pick
WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
