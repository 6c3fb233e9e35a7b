-- Ends attempts whose tasks go on (1 retry, 2 snooze, 3 release) or die (6), unless they have a cancel request. If the
-- attempts of a task are spent, a retry is its death: the row says how many attempts it has. A released task is ready,
-- or held if it has a job: its room is given back. The numbers in the ready line are drawn in the order of the tasks.
-- Only the primary key can serve the fence. $1 worker, $2 tasks in order, $3 leases, $4 how, $5 due times, $6 errors.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT u.id, u.lease, u.how, u.due_at, u.error, CASE u.how WHEN 3 THEN nextval('windlass.seq') END AS ready_seq
  FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::bigint[], $6::text[]) AS u (id, lease, how, due_at, error)
)
UPDATE windlass.task AS t
SET
  state = CASE
    WHEN item.how = 3 THEN CASE WHEN t.job IS NULL THEN 1 ELSE 3 END
    WHEN item.how = 6 OR item.how = 1 AND t.attempt >= t.max_attempts THEN 6
    ELSE 0
  END,
  ready_seq = CASE WHEN t.job IS NULL THEN item.ready_seq END,
  paced = NULL,
  due_at = CASE WHEN item.how = 1 AND t.attempt >= t.max_attempts THEN NULL ELSE item.due_at END,
  ended_at = CASE WHEN item.how = 6 OR item.how = 1 AND t.attempt >= t.max_attempts THEN (SELECT now FROM clock) END,
  attempt = CASE WHEN item.how IN (2, 3) THEN greatest(t.attempt - 1, 0) ELSE t.attempt END,
  crashes = CASE item.how WHEN 3 THEN t.crashes ELSE 0 END,
  error = CASE WHEN item.how IN (1, 6) THEN item.error ELSE t.error END,
  -- Most tasks have no entry yet, and many may fail at once: the first entry is written without a function call.
  log = CASE
    WHEN t.log IS NULL THEN jsonb_build_array(jsonb_build_array(
      t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock),
      CASE WHEN item.how = 1 AND t.attempt >= t.max_attempts THEN 6 ELSE item.how END, item.error
    ))
    ELSE windlass.logged(t.log, jsonb_build_array(
      t.attempt, t.lease, t.worker, t.claimed_at, (SELECT now FROM clock),
      CASE WHEN item.how = 1 AND t.attempt >= t.max_attempts THEN 6 ELSE item.how END, item.error
    ))
  END
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.lease = item.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
  AND t.cancel IS NULL
RETURNING t.id, t.lane, t.state, t.job, t.workflow, t.step
