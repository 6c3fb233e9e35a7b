-- Moves a schedule to its next tick. Index: primary key.
UPDATE schedule SET next_at = ?2, last_at = ?3, last_task = ?4 WHERE name = ?1
