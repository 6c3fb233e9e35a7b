-- Records when a session was used. $1 id. Index: primary key.
UPDATE windlass.session AS s SET seen_at = windlass.now_ms() WHERE s.id = $1
