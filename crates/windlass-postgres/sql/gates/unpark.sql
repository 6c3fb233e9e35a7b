-- Lets held tasks of lanes that have a live worker again take part. $1 how many at most. Index: task_parked; the update
-- goes by the primary key.
WITH lanes AS MATERIALIZED (
  SELECT l.id
  FROM windlass.lane AS l
  WHERE EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 3 AND t.parked AND t.lane = l.id OFFSET 0)
    AND windlass.is_live(l.queue, l.kind)
), pick AS MATERIALIZED (
  SELECT t.id
  FROM lanes
  CROSS JOIN LATERAL (
    SELECT t.id FROM windlass.task AS t WHERE t.state = 3 AND t.parked AND t.lane = lanes.id ORDER BY t.lane LIMIT $1
  ) AS t
  ORDER BY t.id
  LIMIT $1
), back AS (
  UPDATE windlass.task AS t
  SET parked = false
  FROM pick
  WHERE t.id = ANY (ARRAY[pick.id]) AND t.state + 0 = 3
  RETURNING t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, back.job FROM back
)
SELECT count(*) FROM back
