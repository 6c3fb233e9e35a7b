-- Adds tasks of any sort whose keys are settled, and rings an idle worker that serves them. The answer has the order of the
-- tasks. $1 lanes, $2 priorities, $3 attempts, $4 encodings, $5 payloads, $6 channel, $7 whether to ring, $8 the caller's
-- listener, $9 delays, $10 due times, $11 time limits, $12 retry policies, $13 jobs, $14 keys, $15 ids that were drawn with
-- the keys.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT
    u.lane, u.priority, u.max_attempts, u.encoding, u.payload, u.timeout_ms, u.retry, u.job, u.key,
    u.id, nextval('windlass.seq') AS seq,
    CASE
      WHEN coalesce(clock.now + u.delay_ms, u.due_at) > clock.now THEN coalesce(clock.now + u.delay_ms, u.due_at)
    END AS due_at
  FROM unnest(
    $1::integer[], $2::integer[], $3::integer[], $4::smallint[], $5::bytea[], $9::bigint[], $10::bigint[],
    $11::bigint[], $12::text[], $13::text[], $14::text[], $15::bigint[]
  ) AS u (lane, priority, max_attempts, encoding, payload, delay_ms, due_at, timeout_ms, retry, job, key, id)
  CROSS JOIN clock
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, due_at, timeout_ms, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, retry, job,
    key, payload
  )
  SELECT
    coalesce(item.id, windlass.task_id(clock.now, item.seq)), CASE WHEN item.due_at IS NULL THEN item.seq END, item.due_at,
    item.timeout_ms, item.lane, item.priority, 0, 0, item.max_attempts, 0, CASE WHEN item.due_at IS NULL THEN 1 ELSE 0 END,
    item.encoding, item.retry, item.job, item.key, item.payload
  FROM item CROSS JOIN clock
), rung AS MATERIALIZED (
  SELECT pg_notify($6, d.listener::text)
  FROM (
    SELECT d.listener FROM windlass.doorbell AS d
    WHERE $7 AND d.armed_until > (SELECT now FROM clock) AND d.lanes && $1 AND d.listener <> $8
      AND EXISTS (SELECT 1 FROM item WHERE item.due_at IS NULL)
    ORDER BY random()
    LIMIT 1
  ) AS d
)
SELECT coalesce(item.id, windlass.task_id(clock.now, item.seq)), (SELECT count(*) FROM rung), item.due_at
FROM item CROSS JOIN clock
