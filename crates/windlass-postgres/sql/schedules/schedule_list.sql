-- Every schedule, by name.
SELECT s.name, s.spec, s.paused, s.next_at, s.last_at, s.last_task FROM windlass.schedule AS s ORDER BY s.name
