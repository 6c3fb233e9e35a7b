-- The same as enqueue_plain.sql for one task, with no more set up than that needs. If $9 is true, its commit
-- does not wait for the disk, so that a worker has the task meanwhile; flush.sql, which is sent with it, does. Whoever is rung is told which task it is. $1 lane, $2 priority, $3 attempts, $4 encoding,
-- $5 payload, $6 channel, $7 whether to ring, $8 the caller's listener. Index: primary key of doorbell.
WITH item AS MATERIALIZED (
  SELECT windlass.now_ms() AS now, nextval('windlass.seq') AS seq, set_config('synchronous_commit', CASE WHEN $9 THEN 'off' ELSE current_setting('synchronous_commit') END, true)
), added AS (
  INSERT INTO windlass.task (
    id, ready_seq, lane, priority, lease, attempt, max_attempts, crashes, state, encoding, payload
  )
  SELECT windlass.task_id(item.now, item.seq), item.seq, $1, $2, 0, 0, $3, 0, 1, $4, $5 FROM item
)
SELECT
  windlass.task_id(item.now, item.seq),
  (
    SELECT pg_notify($6, d.listener || ' ' || windlass.task_id(item.now, item.seq))::text
    FROM (
      SELECT d.listener FROM windlass.doorbell AS d
      WHERE $7 AND d.armed_until > item.now AND d.lanes @> ARRAY[$1] AND d.listener <> $8
      ORDER BY random()
      LIMIT 1
    ) AS d
  )
FROM item
