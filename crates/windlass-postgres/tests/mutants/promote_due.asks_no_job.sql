-- Broken: a task that becomes due is made ready without a check of its job. Breaks LIMIT. Noticed by jobs::a_task_that_becomes_due_asks_its_job, own::no_commit_leaves_more_ready_than_the_limit_allows
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
  SELECT due.id, due.job, nextval('windlass.seq') AS ready_seq FROM due
), moved AS (
  UPDATE windlass.task AS t
  SET state = 1, ready_seq = item.ready_seq, due_at = NULL
  FROM item
  WHERE t.id = ANY (ARRAY[item.id]) AND t.state = 0
  RETURNING t.lane, t.job
), todo AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, moved.job FROM moved WHERE moved.job IS NOT NULL
)
SELECT moved.lane, moved.job IS NOT NULL FROM moved
