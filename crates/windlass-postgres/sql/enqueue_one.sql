-- The same as enqueue_plain.sql for one task, with no more set up than that needs. A worker that has offered to take it has it leased in
-- the same commit, and is told all of it on the channel of its own; else an idle one is told which task it is. Nothing can stand before it in
-- its line but what came since that worker last looked. If $9 is true, the commit does not wait for the disk, so that a worker has
-- the task meanwhile; flush.sql, which follows, does. $1 lane, $2 priority, $3 attempts, $4 encoding, $5 payload, $6 channel,
-- $7 whether to ring, $8 the caller's listener, $10 whether the task may be told: its payload is small, and the commit does not wait.
-- Indexes: primary keys of doorbell, worker and paused_queue, task_suspect_waiting, task_suspect_running.
WITH item AS MATERIALIZED (
  SELECT
    windlass.now_ms() AS now,
    nextval('windlass.seq') AS seq,
    set_config('synchronous_commit', CASE WHEN $9 THEN 'off' ELSE current_setting('synchronous_commit') END, true)
), offered AS MATERIALIZED (
  SELECT d.listener, d.worker, d.claim_no, d.whisper, d.presence
  FROM windlass.doorbell AS d
  WHERE $7 AND $10 AND d.worker IS NOT NULL AND d.armed_until > (SELECT now FROM item) AND d.offered @> ARRAY[$1::integer]
    AND d.listener <> $8
  ORDER BY random()
  LIMIT 1
  FOR UPDATE SKIP LOCKED
), taker AS MATERIALIZED (
  SELECT o.worker, o.claim_no, o.whisper
  FROM offered AS o
  -- Whoever still listens holds it.
  WHERE NOT pg_try_advisory_xact_lock_shared(o.presence)
    AND EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.id = o.worker AND w.ended_at IS NULL AND w.min_claim_no <= o.claim_no AND w.expires_at > (SELECT now FROM item)
      FOR KEY SHARE SKIP LOCKED
    )
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = o.worker)
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 AND t.lane = $1)
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue)
), taken AS (
  UPDATE windlass.doorbell AS d SET worker = NULL FROM offered AS o WHERE d.listener = o.listener
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, worker, claim_no, claimed_at
  )
  SELECT
    windlass.task_id(i.now, i.seq), i.seq, $1, $2, (t.worker IS NOT NULL)::integer, (t.worker IS NOT NULL)::integer, $3, 0,
    CASE WHEN t.worker IS NULL THEN 1 ELSE 2 END, $4, $5, t.worker, t.claim_no, CASE WHEN t.worker IS NOT NULL THEN i.now END
  FROM item AS i LEFT JOIN taker AS t ON true
)
SELECT
  windlass.task_id(i.now, i.seq),
  t.worker IS NOT NULL,
  CASE
    WHEN t.worker IS NOT NULL THEN pg_notify(
      t.whisper,
      concat_ws(' ', t.worker, t.claim_no, windlass.task_id(i.now, i.seq), $1, $2, $3, $4, i.now, encode($5, 'hex'))
    )::text
    ELSE (
      SELECT pg_notify($6, d.listener || ' ' || windlass.task_id(i.now, i.seq))::text
      FROM (
        SELECT d.listener FROM windlass.doorbell AS d
        WHERE $7 AND d.armed_until > i.now AND d.lanes @> ARRAY[$1] AND d.listener <> $8
        ORDER BY random()
        LIMIT 1
      ) AS d
    )
  END
FROM item AS i LEFT JOIN taker AS t ON true
