-- Notifies one idle worker of another process that serves any of these lanes. $1 lanes, $2 channel, $3 the caller.
SELECT pg_notify($2, d.listener::text)
FROM (
  SELECT d.listener FROM windlass.doorbell AS d
  WHERE d.armed_until > windlass.now_ms() AND d.lanes && $1 AND d.listener <> $3
  ORDER BY random()
  LIMIT 1
) AS d
