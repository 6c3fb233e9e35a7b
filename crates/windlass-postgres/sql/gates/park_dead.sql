-- Puts aside ready tasks that have a job if no live worker serves their lanes any more: they must not hold the job's
-- room. $1 how many at most. Index: task_job, lane_in_use; the update goes by the primary key.
WITH dead AS MATERIALIZED (
  SELECT l.id FROM windlass.lane AS l WHERE NOT l.retired AND NOT windlass.is_live(l.queue, l.kind)
), pick AS MATERIALIZED (
  SELECT t.id
  FROM windlass.job AS j
  CROSS JOIN LATERAL (
    SELECT t.id, t.lane FROM windlass.task AS t WHERE t.job = j.name AND t.state = 1 OFFSET 0
  ) AS t
  WHERE EXISTS (SELECT 1 FROM dead) AND t.lane = ANY (ARRAY(SELECT dead.id FROM dead))
  ORDER BY t.id
  LIMIT $1
), back AS (
  UPDATE windlass.task AS t
  SET state = 3, ready_seq = NULL, parked = true, paced = NULL
  FROM pick
  WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 1
  RETURNING t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, back.job FROM back
)
SELECT count(*) FROM back
