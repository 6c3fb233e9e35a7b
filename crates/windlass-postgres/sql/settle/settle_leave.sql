-- Ends attempts and their tasks with them: done or cancelled, perhaps with an output. Only the primary key can serve
-- the fence. $1 worker, $2 tasks in order, $3 leases, $4 states, $5 errors, $6 output encodings, $7 outputs, $8 how
-- long a key is remembered, $9 keep all. A cancelled step is always kept: it may block its workflow.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), gone AS (
  DELETE FROM windlass.task AS t
  USING unnest($2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::smallint[], $7::bytea[])
    AS u (id, lease, state, error, output_encoding, output)
  WHERE t.id = ANY (ARRAY[u.id]) AND t.lease = u.lease AND t.state + 0 = 2 AND t.worker IS NOT DISTINCT FROM $1
    AND (u.state = 5 OR t.cancel IS NULL)
  RETURNING t.id, t.claimed_at, t.timeout_ms, t.lane, t.priority, t.lease, t.attempt, t.max_attempts, t.encoding,
    t.job, t.workflow, t.step, t.key, t.progress, t.log, t.payload, u.state, u.error, u.output_encoding, u.output
), {keep_history:
    keep = $9 OR g.output IS NOT NULL OR (g.state = 7 AND g.workflow IS NOT NULL),
    worker = $1, state = g.state, result_encoding = g.output_encoding, ran = true, error = g.error, output = g.output, ttl = $8
}
SELECT id, lane, state, job, workflow, step FROM gone
