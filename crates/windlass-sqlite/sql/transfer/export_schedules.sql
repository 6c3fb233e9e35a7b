-- Schedules for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT name, spec, paused, next_at, last_at, last_task
FROM schedule
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
