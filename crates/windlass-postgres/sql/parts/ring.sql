-- Notifies one idle worker of another process that serves one of these lanes. :channel, :if, :now, :lanes, :listener (the
-- caller's). Index: primary key of doorbell.
SELECT pg_notify(:channel, d.listener::text)::text
FROM (
  SELECT d.listener FROM windlass.doorbell AS d
  WHERE :if AND d.armed_until > :now AND d.lanes && :lanes AND d.listener <> :listener
  ORDER BY random()
  LIMIT 1
) AS d
