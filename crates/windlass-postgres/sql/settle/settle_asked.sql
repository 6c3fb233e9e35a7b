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
), kept AS (
  INSERT INTO windlass.history (
    id, started_at, ended_at, worker, timeout_ms, lane, priority, lease, attempt, max_attempts, state, encoding, ran,
    job, workflow, key, progress, error, log, payload
  )
  SELECT
    g.id, g.claimed_at, (SELECT now FROM clock), $1, g.timeout_ms, g.lane, g.priority, g.lease, g.attempt,
    g.max_attempts, 7, g.encoding, true, g.job, g.workflow, g.key, g.progress, g.cancel, g.log, g.payload
  FROM gone AS g
  WHERE $5 OR g.workflow IS NOT NULL OR EXISTS (SELECT 1 FROM windlass.awaited AS a WHERE a.task = g.id)
), remembered AS (
  UPDATE windlass.key AS k
  SET expires_at = (SELECT now FROM clock) + $4
  FROM gone AS g JOIN windlass.lane AS l ON l.id = g.lane
  WHERE g.key IS NOT NULL AND k.queue = ANY (ARRAY[l.queue]) AND k.key = ANY (ARRAY[g.key]) AND k.task = g.id
)
SELECT id, lane, 7::smallint, job, workflow, step FROM gone
