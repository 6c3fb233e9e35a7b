-- Broken: a worker takes suspects of any group. Breaks POISON-CONTAINED. Noticed by suspects::a_worker_runs_one_group_of_suspects_at_a_time
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), line AS MATERIALIZED (
  SELECT t.ctid AS place
  FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
  WHERE t.state = 1 AND t.crashes >= 2 AND t.lane = ANY($3) AND coalesce($4, '{}') IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
  ORDER BY t.priority DESC, t.ready_seq
  LIMIT $5
  FOR UPDATE OF t SKIP LOCKED
), taken AS (
  UPDATE windlass.task
  SET state = 2, lease = lease + 1, attempt = attempt + 1, worker = $1, claim_no = $2,
    claimed_at = (SELECT now FROM clock)
  WHERE ctid = ANY (ARRAY(SELECT place FROM line)) AND state = 1
  RETURNING id, lease, attempt, max_attempts, crashes, lane, priority, ready_seq, encoding, payload, timeout_ms,
    retry, job, workflow, paced, trace, ctid AS place
), started AS (
  INSERT INTO windlass.gate_todo (kind, key) SELECT DISTINCT 2::smallint, taken.job FROM taken WHERE taken.paced
)
SELECT
  clock.now, true, false, false, NULL::boolean, NULL::bigint, NULL::bigint, true, true,
  t.id, t.lease, t.attempt, t.max_attempts, t.crashes, t.lane, t.priority, t.ready_seq, t.encoding, t.payload,
  t.timeout_ms, t.retry, t.job, t.workflow, t.trace, t.place
FROM clock CROSS JOIN taken AS t
ORDER BY t.priority DESC, t.ready_seq
