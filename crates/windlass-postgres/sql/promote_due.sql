-- Makes tasks ready whose time has come, the longest due first. $1 how many at most. Index: task_due; the update goes by the
-- primary key.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), due AS MATERIALIZED (
  SELECT t.id
  FROM windlass.task AS t
  WHERE t.state = 0 AND t.due_at <= (SELECT now FROM clock)
  ORDER BY t.due_at, t.id
  LIMIT $1
  FOR UPDATE SKIP LOCKED
), item AS MATERIALIZED (
  SELECT due.id, nextval('windlass.seq') AS ready_seq FROM due
)
UPDATE windlass.task AS t
SET state = 1, ready_seq = item.ready_seq, due_at = NULL
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state = 0
RETURNING t.lane
