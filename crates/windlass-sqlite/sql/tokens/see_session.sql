-- Records when a session was used. Index: primary key.
UPDATE session SET seen_at = ?2 WHERE id = ?1
