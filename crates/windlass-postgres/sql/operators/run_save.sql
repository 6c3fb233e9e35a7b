-- Replaces the text of a run that still has this version. $1 id, $2 version, $3 whether it goes on, $4 its text. Index:
-- primary key.
UPDATE windlass.run AS r
SET version = r.version + 1, running = r.running AND $3, updated_at = windlass.now_ms(), body = $4
WHERE r.id = $1 AND r.version = $2
RETURNING r.id, r.version, r.running, r.started_at, r.updated_at, r.updated_at, r.body
