-- Adds one task that may start at once. It is leased in the same commit to a worker that waits for it: the one that the
-- caller names, if nothing is ready before the task; else one of another process that has offered to take the next
-- task, which is told all of it on a channel of its own. Without such a worker the task is ready, and an idle worker is
-- notified.
-- If $12 is true, the commit does not wait for the disk: the worker has the task meanwhile, and flush.sql, which
-- follows, waits.
-- $1 lane, $2 priority, $3 attempts, $4 encoding, $5 payload, $6 time limit, $7 retry policy, $8 trace, $9 channel, $10
-- whether to notify, $11 the caller's listener, $13 whether an offer may be taken; $14 a worker that waits, or NULL,
-- $15 its claim number, $16–$18 ranges of the lane that stand before the task, as in take.sql; $19 crashes of a last
-- chance, $20 ms for which that runs alone for each crash.
-- Indexes: primary keys of doorbell, worker, lease_epoch, lane and paused_queue, lane_idle, task_ready,
-- task_suspect_waiting, task_suspect_running.
WITH item AS MATERIALIZED (
  SELECT
    windlass.now_ms() AS now,
    nextval('windlass.seq') AS seq,
    set_config('synchronous_commit', CASE WHEN $12 THEN 'off' ELSE current_setting('synchronous_commit') END, true)
), offered AS MATERIALIZED (
  SELECT d.listener, d.worker, d.claim_no, d.whisper, d.presence
  FROM windlass.doorbell AS d
  WHERE $10 AND $13 AND d.worker IS NOT NULL AND d.armed_until > (SELECT now FROM item) AND d.offered @> ARRAY[$1::integer]
    AND d.listener <> $11
  ORDER BY random()
  LIMIT 1
  FOR UPDATE SKIP LOCKED
), candidate AS MATERIALIZED (
  -- The process of an offer holds this lock as long as it listens.
  SELECT o.worker, o.claim_no, o.whisper FROM offered AS o WHERE NOT pg_try_advisory_xact_lock_shared(o.presence)
  UNION ALL
  SELECT $14::bigint, $15::bigint, NULL
  WHERE $14::bigint IS NOT NULL
    AND NOT EXISTS (
      SELECT 1
      FROM unnest($16::integer[], $17::integer[], $18::bigint[]) AS r (high, low, after)
      -- Range by range: without OFFSET the server may read the whole ready line instead.
      WHERE EXISTS (
        SELECT 1
        FROM windlass.task AS t
        WHERE t.state = 1 AND t.crashes < 2 AND t.lane = $1 AND t.priority BETWEEN r.low AND r.high AND t.ready_seq > r.after
        OFFSET 0
      )
    )
), taker AS MATERIALIZED (
  SELECT c.worker, c.claim_no, c.whisper
  FROM candidate AS c
  WHERE {may_claim: worker = c.worker, claim_no = c.claim_no, lanes = ARRAY[$1::integer], last_chance = $19, isolation_ms = $20::bigint, locked = SKIP LOCKED}
    AND NOT EXISTS (
      SELECT 1 FROM windlass.lane AS l JOIN windlass.paused_queue AS p ON p.queue = l.queue WHERE l.id = $1
    )
), taken AS (
  UPDATE windlass.doorbell AS d SET worker = NULL FROM offered AS o WHERE d.listener = o.listener
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, timeout_ms, retry, trace,
    worker, claim_no, claimed_at
  )
  SELECT
    windlass.task_id(i.now, i.seq), i.seq, $1, $2, (t.worker IS NOT NULL)::integer, (t.worker IS NOT NULL)::integer, $3, 0,
    CASE WHEN t.worker IS NULL THEN 1 ELSE 2 END, $4, $5, $6, $7, $8,
    t.worker, t.claim_no, CASE WHEN t.worker IS NOT NULL THEN i.now END
  FROM item AS i LEFT JOIN taker AS t ON true
)
SELECT
  windlass.task_id(i.now, i.seq),
  t.worker IS NOT NULL,
  i.now,
  CASE
    WHEN t.whisper IS NOT NULL THEN pg_notify(
      t.whisper,
      concat_ws(' ', t.worker, t.claim_no, windlass.task_id(i.now, i.seq), $1, $2, $3, $4, i.now, encode($5, 'hex'))
    )::text
    WHEN t.worker IS NULL THEN (
      {ring: channel = $9, if = $10, now = i.now, lanes = ARRAY[$1], listener = $11}
    )
  END,
  {wake_lanes: lanes = ARRAY[$1::integer]}
FROM item AS i LEFT JOIN taker AS t ON true
