-- Takes ready tasks as claim.sql does and says nothing else, with no more set up than that needs: for few tasks it costs the
-- server a third. Brings nothing where more would have to be known or done, and whoever asked goes the long way then: the worker's lease
-- is not in force, the epoch of leases is not known, a suspect waits or runs, a queue is paused, a task among them belongs to a job with a delay; or there are several lanes
-- and more is ready than was asked for, so that their heads would have to be compared.
-- $1 worker, $2 claim number, $3 how many, $4–$7 stretches as in claim.sql, $8 from how many on nothing is taken, less one,
-- $9 whether there is so much that a row that anybody has locked, be it long ago, can be passed over: a claim from the head finds it.
-- Indexes: primary keys of worker, lease_epoch and paused_queue, task_ready, task_suspect_waiting, task_suspect_running; the update goes by ctid.
WITH line AS MATERIALIZED (
  -- One row, which is looked at as often as it takes; a thousand would be copied and read again each time.
  SELECT array_agg(t.place) AS places, bool_or(t.paced) AS is_paced, count(*) AS n
  FROM (
    SELECT t.place, t.paced
    FROM unnest($4::integer[], $5::integer[], $6::integer[], $7::bigint[]) AS s (lane, high, low, after)
    CROSS JOIN LATERAL (
      SELECT task.ctid AS place, task.paced
      FROM windlass.task
      WHERE task.state = 1 AND task.crashes < 2 AND task.lane = s.lane
        AND task.priority BETWEEN s.low AND s.high AND task.ready_seq > s.after
        -- Somebody takes it, or wanted to: to try its lock costs as much as to take another. Whoever made it may have locked it before.
        AND (NOT $9 OR task.xmax = '0'::xid OR task.xmax = task.xmin)
      ORDER BY task.priority DESC, task.ready_seq
      LIMIT $3
      FOR UPDATE SKIP LOCKED
    ) AS t
    -- Asked once, before anything is read: none of it depends on a task.
    WHERE EXISTS (
        SELECT 1
        FROM windlass.worker AS w
        WHERE w.id = $1 AND w.ended_at IS NULL AND w.min_claim_no <= $2 AND w.expires_at > windlass.now_ms()
          AND EXISTS (SELECT 1 FROM windlass.lease_epoch AS e WHERE e.id = 1)
        FOR KEY SHARE
      )
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = $1)
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($4))
      AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue)
    LIMIT $3
  ) AS t
)
-- At the top: in a WITH its rows would be kept twice, each with its payload.
UPDATE windlass.task
SET state = 2, lease = greatest(lease + 1, (SELECT e.first_lease FROM windlass.lease_epoch AS e WHERE e.id = 1)),
    attempt = attempt + 1, worker = $1, claim_no = $2,
  claimed_at = (SELECT windlass.now_ms())
WHERE ctid = ANY ((SELECT places FROM line WHERE is_paced IS NOT TRUE AND n <= $8)::tid[]) AND state = 1
-- What is as usual is left out: to send a number costs the server more than to compare it. Nothing for the lane is the first of $4.
RETURNING id, NULLIF(lease, 1), NULLIF(attempt, 1), NULLIF(max_attempts, 10), NULLIF(crashes, 0),
  NULLIF(lane, (SELECT ($4::integer[])[1])), NULLIF(priority, 0), ready_seq, NULLIF(encoding, 0::smallint), payload, timeout_ms,
  retry, job, workflow, trace, ctid, claimed_at
