-- Ends attempts that were asked to end, unless they succeeded; how else they ended does not matter. Only the primary
-- key can serve the fence. A step is always kept: it may block its workflow. $1 worker, $2 tasks in order, $3 leases,
-- $4 how long a key is remembered, $5 keep all.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), gone AS (
  DELETE FROM windlass.task AS t
  USING unnest($2::bigint[], $3::integer[]) AS u (id, lease)
  WHERE t.id = ANY (ARRAY[u.id]) AND t.lease = u.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
    AND t.cancel IS NOT NULL
  RETURNING t.id, t.claimed_at, t.timeout_ms, t.lane, t.priority, t.lease, t.attempt, t.max_attempts, t.encoding,
    t.job, t.workflow, t.step, t.key, t.progress, t.cancel, t.log, t.payload
), {keep_history:
    keep = $5 OR g.workflow IS NOT NULL, worker = $1, state = 7, result_encoding = NULL, ran = true, error = g.cancel, output = NULL, ttl = $4
}
SELECT id, lane, 7::smallint, job, workflow, step FROM gone
