-- Broken: held tasks of a lane that has a live worker again stay held. Breaks NO-STRANDED. Noticed by lanes_alive::tasks_of_a_paused_queue_give_their_room_to_others
WITH lanes AS MATERIALIZED (
  SELECT l.id
  FROM windlass.lane AS l
  WHERE EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 3 AND t.parked AND t.lane = l.id OFFSET 0)
    AND NOT windlass.is_live(l.queue, l.kind)
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
