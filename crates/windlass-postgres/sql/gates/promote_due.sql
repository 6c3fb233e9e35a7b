-- Makes due tasks ready, or held if they have a job, the longest due first. $1 how many at most. Index: task_due; the
-- update goes by the primary key.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), due AS MATERIALIZED (
  SELECT t.id, t.job
  FROM windlass.task AS t
  WHERE t.state = 0 AND t.due_at <= (SELECT now FROM clock)
  ORDER BY t.due_at, t.id
  LIMIT $1
  FOR UPDATE SKIP LOCKED
), item AS MATERIALIZED (
  SELECT due.id, due.job, CASE WHEN due.job IS NULL THEN nextval('windlass.seq') END AS ready_seq FROM due
), moved AS (
  UPDATE windlass.task AS t
  SET state = CASE WHEN item.job IS NULL THEN 1 ELSE 3 END, ready_seq = item.ready_seq, due_at = NULL
  FROM item
  WHERE t.id = ANY (ARRAY[item.id]) AND t.state = 0
  RETURNING t.lane, t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, moved.job FROM moved WHERE moved.job IS NOT NULL
)
SELECT moved.lane, moved.job IS NOT NULL FROM moved
