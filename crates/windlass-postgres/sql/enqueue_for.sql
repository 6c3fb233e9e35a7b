-- Adds one task that may start at once: as a lease of a worker that waits for it if that may claim and nothing is ready before the
-- task, else as a ready one, for which an idle worker is rung. If $17 is true, its commit does not wait for the disk; flush.sql, which is
-- sent with it, does. $1 lane, $2 priority, $3 attempts, $4 encoding, $5 payload, $6 channel,
-- $7 whether to ring, $8 the caller's listener, $9 time limit, $10 retry policy, $11 trace, $12 worker, $13 claim number; $14–$16
-- stretches of the lane: highest and lowest priority, place after which it is read.
-- Indexes: primary keys of worker, lane and doorbell, task_ready, task_suspect_waiting, task_suspect_running.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, set_config('synchronous_commit', CASE WHEN $17 THEN 'off' ELSE current_setting('synchronous_commit') END, true)
), holder AS MATERIALIZED (
  SELECT w.id
  FROM windlass.worker AS w
  WHERE w.id = $12 AND w.ended_at IS NULL AND w.min_claim_no <= $13 AND w.expires_at > (SELECT now FROM clock)
  FOR KEY SHARE
), item AS MATERIALIZED (
  SELECT
    nextval('windlass.seq') AS seq,
    EXISTS (SELECT 1 FROM holder)
      AND NOT EXISTS (
        SELECT 1 FROM windlass.lane AS l JOIN windlass.paused_queue AS p ON p.queue = l.queue WHERE l.id = $1
      )
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 AND t.lane = $1)
      AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 2 AND t.crashes >= 2 AND t.worker = $12)
      AND NOT EXISTS (
        SELECT 1
        FROM unnest($14::integer[], $15::integer[], $16::bigint[]) AS s (high, low, after)
        -- Stretch by stretch: without OFFSET the server may read the whole line instead.
        WHERE EXISTS (
          SELECT 1 FROM windlass.task AS t
          WHERE t.state = 1 AND t.crashes < 2 AND t.lane = $1 AND t.priority BETWEEN s.low AND s.high
            AND t.ready_seq > s.after
          OFFSET 0
        )
      ) AS is_straight
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload, timeout_ms, retry, trace,
    worker, claim_no, claimed_at
  )
  SELECT
    windlass.task_id(clock.now, item.seq), item.seq, $1, $2, item.is_straight::integer, item.is_straight::integer, $3, 0,
    CASE WHEN item.is_straight THEN 2 ELSE 1 END, $4, $5, $9, $10, $11,
    CASE WHEN item.is_straight THEN $12 END, CASE WHEN item.is_straight THEN $13 END,
    CASE WHEN item.is_straight THEN clock.now END
  FROM item CROSS JOIN clock
), rung AS MATERIALIZED (
  SELECT pg_notify($6, d.listener::text)
  FROM (
    SELECT d.listener FROM windlass.doorbell AS d
    WHERE $7 AND NOT (SELECT is_straight FROM item) AND d.armed_until > (SELECT now FROM clock) AND d.lanes && ARRAY[$1]
      AND d.listener <> $8
    ORDER BY random()
    LIMIT 1
  ) AS d
)
SELECT windlass.task_id(clock.now, item.seq), item.is_straight, clock.now, (SELECT count(*) FROM rung)
FROM item CROSS JOIN clock
