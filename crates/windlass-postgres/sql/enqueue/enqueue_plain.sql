-- Adds tasks that may start at once and have only a payload, and notifies an idle worker that serves them. The answer
-- has the order of the tasks. $1 lanes, $2 priorities, $3 attempts, $4 encodings, $5 payloads, $6 channel, $7 whether
-- to notify, $8 the caller's listener. Index: primary key of doorbell, lane_idle.
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
  SELECT {wake_lanes: lanes = $1}
)
SELECT windlass.task_id(clock.now, item.seq), (SELECT count(*) FROM rung) + (SELECT count(*) FROM woken)
FROM item CROSS JOIN clock
