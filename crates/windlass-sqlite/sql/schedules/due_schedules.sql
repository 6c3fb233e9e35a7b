-- Schedules by their next tick, the most overdue first. Index: schedule_due, in order.
SELECT name, spec, paused, next_at, last_at, last_task FROM schedule
WHERE next_at IS NOT NULL AND paused = 0
ORDER BY next_at, name
LIMIT ?1
