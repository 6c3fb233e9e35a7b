-- One schedule. $1 name. Index: primary key.
SELECT s.name, s.spec, s.paused, s.next_at, s.last_at, s.last_task FROM windlass.schedule AS s WHERE s.name = $1
