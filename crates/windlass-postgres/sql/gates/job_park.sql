-- Puts aside held tasks at the head of jobs if no live worker serves their lanes. $1 locked jobs, $2 how many tasks of
-- each to look at. Index: task_job, primary keys of lane and task.
WITH pick AS MATERIALIZED (
  SELECT t.id, t.lane
  FROM unnest($1::text[]) AS u (name)
  CROSS JOIN LATERAL (
    SELECT t.id, t.lane
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 3 AND NOT t.parked AND NOT t.aside
    ORDER BY t.priority DESC, t.id
    LIMIT $2
  ) AS t
), dead AS MATERIALIZED (
  SELECT l.id
  FROM windlass.lane AS l
  WHERE l.id = ANY (ARRAY(SELECT DISTINCT pick.lane FROM pick)) AND NOT windlass.is_live(l.queue, l.kind)
)
UPDATE windlass.task AS t
SET parked = true
-- In the order of the tasks, in which every transaction locks them.
FROM (SELECT pick.id FROM pick WHERE pick.lane = ANY (ARRAY(SELECT dead.id FROM dead)) ORDER BY pick.id) AS item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 3
RETURNING t.id
