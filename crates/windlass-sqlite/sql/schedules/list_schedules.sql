-- Every schedule. Index: primary key, in order.
SELECT name, spec, paused, next_at, last_at, last_task FROM schedule
ORDER BY name
