-- Grants dead tasks a fresh budget, and notes it. $1 ids in order, $2 delays. Index: primary key.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
)
UPDATE windlass.task AS t
SET
  state = 0, due_at = (SELECT now FROM clock) + u.delay_ms, ended_at = NULL, attempt = 0, crashes = 0,
  log = windlass.logged(t.log, jsonb_build_array(t.attempt, t.lease, NULL, NULL, (SELECT now FROM clock), 7, NULL))
FROM unnest($1::bigint[], $2::bigint[]) AS u (id, delay_ms)
WHERE t.id = ANY (ARRAY[u.id]) AND t.state + 0 = 6
RETURNING t.id, t.due_at
