-- Schedules, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT name, spec, paused, next_at, last_at, last_task
FROM schedule
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
