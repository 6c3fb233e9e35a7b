-- Broken: tasks by cached numbers leave their lanes retired. Breaks NO-STRANDED. Noticed by own::a_number_that_was_read_before_brings_its_lane_back
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), item AS MATERIALIZED (
  SELECT u.lane, u.priority, u.max_attempts, u.encoding, u.payload, nextval('windlass.seq') AS seq
  FROM unnest($1::integer[], $2::integer[], $3::integer[], $4::smallint[], $5::bytea[])
    AS u (lane, priority, max_attempts, encoding, payload)
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload
  )
  SELECT
    windlass.task_id(clock.now, item.seq), item.seq, item.lane, item.priority, 0, 0, item.max_attempts, 0, 1,
    item.encoding, item.payload
  FROM item CROSS JOIN clock
), rung AS MATERIALIZED (
  SELECT pg_notify($6, d.listener::text)
  FROM (
    SELECT d.listener FROM windlass.doorbell AS d
    WHERE $7 AND d.armed_until > (SELECT now FROM clock) AND d.lanes && $1 AND d.listener <> $8
    ORDER BY random()
    LIMIT 1
  ) AS d
), woken AS MATERIALIZED (
  SELECT NULL
)
SELECT windlass.task_id(clock.now, item.seq), (SELECT count(*) FROM rung) + (SELECT count(*) FROM woken)
FROM item CROSS JOIN clock
