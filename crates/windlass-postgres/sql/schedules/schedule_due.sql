-- The first schedules that are due, the time, and one schedule more. $1 how many at most. Index: schedule_next.
SELECT clock.now, s.name, s.spec, s.paused, s.next_at, s.last_at, s.last_task
FROM (SELECT windlass.now_ms() AS now) AS clock
LEFT JOIN LATERAL (
  SELECT s.name, s.spec, s.paused, s.next_at, s.last_at, s.last_task
  FROM windlass.schedule AS s
  WHERE NOT s.paused AND s.next_at IS NOT NULL
  ORDER BY s.next_at
  LIMIT $1
) AS s ON true
ORDER BY s.next_at
