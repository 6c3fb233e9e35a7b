-- Adds one task as a lease of a worker that has offered to take it, and tells that worker all of it on the channel of its own; adds nothing if
-- nobody may have it. What enqueue_one.sql does where there is an offer, for a third less: for a caller who has just met one. Its commit
-- does not wait for the disk; flush.sql, which follows, does. $1 lane, $2 priority, $3 attempts, $4 encoding, $5 payload, $6 the
-- caller's listener. Indexes: primary keys of worker and paused_queue, task_suspect_waiting, task_suspect_running.
WITH taken AS (
  UPDATE windlass.doorbell AS d SET worker = NULL
  FROM (
    SELECT d.ctid, d.worker, d.claim_no, d.whisper, d.presence
    FROM windlass.doorbell AS d
    WHERE d.worker IS NOT NULL AND d.armed_until > windlass.now_ms() AND d.offered @> ARRAY[$1::integer] AND d.listener <> $6
    ORDER BY random()
    LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) AS o
  WHERE d.ctid = o.ctid
  RETURNING o.worker, o.claim_no, o.whisper, o.presence
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, worker, claim_no, claimed_at
  )
  SELECT windlass.task_id(i.now, i.seq), i.seq, $1, $2, 1, 1, $3, 0, 2, $4, $5, o.worker, o.claim_no, i.now
  FROM taken AS o
  CROSS JOIN LATERAL (
    SELECT windlass.now_ms() AS now, nextval('windlass.seq') AS seq, set_config('synchronous_commit', 'off', true)
    OFFSET 0
  ) AS i
  -- Whoever still listens holds it.
  WHERE NOT pg_try_advisory_xact_lock_shared(o.presence)
    AND EXISTS (
      SELECT 1
      FROM windlass.worker AS w
      WHERE w.id = o.worker AND w.ended_at IS NULL AND w.min_claim_no <= o.claim_no AND w.expires_at > i.now
      FOR KEY SHARE SKIP LOCKED
    )
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = o.worker)
    AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 AND t.lane = $1)
    AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue)
  RETURNING id, worker, claim_no, claimed_at
)
SELECT
  a.id,
  pg_notify(
    (SELECT o.whisper FROM taken AS o),
    concat_ws(' ', a.worker, a.claim_no, a.id, $1, $2, $3, $4, a.claimed_at, encode($5, 'hex'))
  )::text
FROM added AS a
