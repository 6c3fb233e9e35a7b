-- Broken: ready tasks of lanes without a live worker keep the room of their jobs. Breaks NO-STRANDED. Noticed by lanes_alive::tasks_of_a_paused_queue_give_their_room_to_others, lanes_alive::a_lane_loses_its_room_with_its_last_worker
WITH dead AS MATERIALIZED (
  SELECT l.id FROM windlass.lane AS l WHERE false
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
