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
), {keep_history:
    keep = $4 OR g.workflow IS NOT NULL, worker = g.worker, state = 7, result_encoding = NULL, ran = false, error = $2, output = NULL, ttl = $3
}, todo AS (
  -- A job without a row has nothing to decide. No row may be made here: the next task may give the job its limit. Not as
  -- EXISTS, which the planner may answer from all jobs at once.
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 0::smallint, g.job FROM gone AS g
  WHERE false
)
SELECT id, state, workflow, step, job IS NOT NULL FROM gone
