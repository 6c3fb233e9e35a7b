-- Broken: a task whose worker died is ready without its job having been asked. Breaks LIMIT. Noticed by own::no_commit_leaves_more_ready_than_the_limit_allows
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT u.id, u.lease, nextval('windlass.seq') AS ready_seq
  FROM unnest($2::bigint[], $3::integer[]) AS u (id, lease)
)
UPDATE windlass.task AS t
SET
  state = CASE WHEN t.crashes + 1 >= $4 THEN 6 ELSE 1 END,
  ready_seq = CASE WHEN t.crashes + 1 < $4 THEN item.ready_seq END,
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
