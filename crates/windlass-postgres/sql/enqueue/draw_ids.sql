-- Ids for tasks, in their order. $1 how many.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
)
SELECT windlass.task_id(clock.now, nextval('windlass.seq')) FROM clock CROSS JOIN generate_series(1, $1::bigint)
