-- Broken: admission is not told that a cancelled task gave its room back. Breaks NO-STRANDED. Noticed by jobs::a_cancelled_task_gives_its_room_to_the_next
-- A step is always kept: it may block its workflow. Index: primary key, also of job.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), gone AS (
  DELETE FROM windlass.task AS t
  USING unnest($1::bigint[]) AS u (id)
  WHERE t.id = ANY (ARRAY[u.id]) AND t.state + 0 IN (0, 1, 3, 4)
    AND (t.workflow IS NULL OR $5)
  RETURNING t.id, t.claimed_at, t.worker, t.timeout_ms, t.lane, t.priority, t.lease, t.attempt, t.max_attempts, t.encoding,
    t.job, t.workflow, t.step, t.state, t.key, t.progress, t.log, t.payload
), kept AS (
  INSERT INTO windlass.history (
    id, started_at, ended_at, worker, timeout_ms, lane, priority, lease, attempt, max_attempts, state, encoding, ran,
    job, workflow, key, progress, error, log, payload
  )
  SELECT
    g.id, g.claimed_at, (SELECT now FROM clock), g.worker, g.timeout_ms, g.lane, g.priority, g.lease, g.attempt,
    g.max_attempts, 7, g.encoding, false, g.job, g.workflow, g.key, g.progress, $2, g.log, g.payload
  FROM gone AS g
  WHERE $4 OR g.workflow IS NOT NULL OR EXISTS (SELECT 1 FROM windlass.awaited AS a WHERE a.task = g.id)
), remembered AS (
  UPDATE windlass.key AS k
  SET expires_at = (SELECT now FROM clock) + $3
  FROM gone AS g JOIN windlass.lane AS l ON l.id = g.lane
  WHERE g.key IS NOT NULL AND k.queue = ANY (ARRAY[l.queue]) AND k.key = ANY (ARRAY[g.key]) AND k.task = g.id
), todo AS (
  -- A job without a row has nothing to decide. No row may be made here: the next task may give the job its limit. Not as
  -- EXISTS, which the planner may answer from all jobs at once.
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, g.job FROM gone AS g
  WHERE false
)
SELECT id, state, workflow, step, job IS NOT NULL FROM gone
