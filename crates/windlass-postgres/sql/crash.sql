-- The worker of these tasks died with them: each counts a crash, gets its attempt back and is a suspect in the ready line, or
-- dead if that happened too often; one with a job is held instead of ready. Those whose end somebody asked for are left to settle_asked.sql. The places in the line
-- are drawn in the order of the tasks. Only the primary key can serve the fence.
-- $1 worker, $2 tasks in order, $3 leases, $4 crashes that end a task.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT u.id, u.lease, nextval('windlass.seq') AS ready_seq
  FROM unnest($2::bigint[], $3::integer[]) AS u (id, lease)
)
UPDATE windlass.task AS t
SET
  state = CASE WHEN t.crashes + 1 >= $4 THEN 6 WHEN t.job IS NOT NULL THEN 3 ELSE 1 END,
  ready_seq = CASE WHEN t.crashes + 1 < $4 AND t.job IS NULL THEN item.ready_seq END,
  paced = NULL,
  ended_at = CASE WHEN t.crashes + 1 >= $4 THEN (SELECT now FROM clock) END,
  attempt = greatest(t.attempt - 1, 0),
  crashes = t.crashes + 1,
  error = CASE WHEN t.crashes + 1 >= $4 THEN 'its process died with it ' || t.crashes + 1 || ' times' ELSE t.error END,
  log = windlass.logged(t.log, jsonb_build_array(
    t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock), 4, 'its process died with it'
  ))
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.lease = item.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
  AND t.cancel IS NULL
RETURNING t.id, t.lane, t.state, t.job, t.workflow, t.step
