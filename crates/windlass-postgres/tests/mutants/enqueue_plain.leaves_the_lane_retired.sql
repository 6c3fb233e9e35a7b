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
  {ring: channel = $6, if = $7, now = (SELECT now FROM clock), lanes = $1, listener = $8}
), woken AS MATERIALIZED (
  SELECT NULL
)
SELECT windlass.task_id(clock.now, item.seq), (SELECT count(*) FROM rung) + (SELECT count(*) FROM woken)
FROM item CROSS JOIN clock
