-- Advances a locked schedule. $1 name, $2 the tick, $3 the next tick, $4 the task of the tick, if there is one.
UPDATE windlass.schedule AS s
SET last_at = CASE WHEN $4::bigint IS NULL THEN s.last_at ELSE $2 END, last_task = coalesce($4, s.last_task), next_at = $3
WHERE s.name = $1
