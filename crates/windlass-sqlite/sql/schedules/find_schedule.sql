-- One schedule. Index: primary key.
SELECT name, spec, paused, next_at, last_at, last_task FROM schedule
WHERE name = ?1
