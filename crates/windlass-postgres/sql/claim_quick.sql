-- Takes ready tasks as claim.sql does and says nothing else, with no more set up than that needs: for few tasks it costs the
-- server a third. Brings nothing where more would have to be known, and whoever asked goes the long way then: the worker's lease
-- is not in force, a suspect is about, a queue is paused; or there are several lanes and more is ready than was asked for, so
-- that their heads would have to be compared.
-- $1 worker, $2 claim number, $3 how many, $4–$7 stretches as in claim.sql, $8 whether they are all of one lane.
-- Indexes: primary keys of worker and paused_queue, task_ready, task_suspect, task_running_suspect; the update goes by ctid.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, set_config('synchronous_commit', 'off', true)
), line AS MATERIALIZED (
  SELECT t.place, t.paced_job
  FROM unnest($4::integer[], $5::integer[], $6::integer[], $7::bigint[]) AS s (lane, high, low, after)
  CROSS JOIN LATERAL (
    SELECT task.ctid AS place, CASE WHEN task.paced THEN task.job END AS paced_job
    FROM windlass.task
    WHERE task.state = 1 AND task.crashes = 0 AND task.lane = s.lane
      AND task.priority BETWEEN s.low AND s.high AND task.ready_seq > s.after
    ORDER BY task.priority DESC, task.ready_seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
  ) AS t
  -- Asked once, before anything is read: none of it depends on a task.
  WHERE EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.id = $1 AND w.ended_at IS NULL AND w.min_claim_no <= $2 AND w.expires_at > (SELECT now FROM clock)
      FOR KEY SHARE
    )
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes > 0 AND t.worker = $1)
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes > 0 AND t.lane = ANY($4))
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue)
  LIMIT $3
), started AS (
  -- The start of a task whose job has a delay is to be noticed. From the line, not from what the update answers: that would
  -- have to be kept for it, every task with its payload.
  INSERT INTO windlass.gate_todo (kind, key)
  SELECT DISTINCT 2::smallint, line.paced_job
  FROM line
  WHERE line.paced_job IS NOT NULL AND ($8 OR (SELECT count(*) FROM line) < $3)
)
UPDATE windlass.task
SET state = 2, lease = lease + 1, attempt = attempt + 1, worker = $1, claim_no = $2,
  claimed_at = (SELECT now FROM clock)
WHERE ctid = ANY (ARRAY(SELECT place FROM line)) AND state = 1
  AND ($8 OR (SELECT count(*) FROM line) < $3)
RETURNING id, lease, attempt, max_attempts, crashes, lane, priority, ready_seq, encoding, payload, timeout_ms, retry, job,
  workflow, trace, ctid, claimed_at, paced
