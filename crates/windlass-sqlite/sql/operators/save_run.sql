-- Replaces the text of a run that still has this version. ?1 id, ?2 version, ?3 whether it goes on, ?4 now, ?5 its text.
-- Index: primary key.
UPDATE run SET version = version + 1, running = min(running, ?3), updated_at = ?4, body = ?5
WHERE id = ?1 AND version = ?2
