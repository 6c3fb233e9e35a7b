-- Makes a schedule, or replaces its text and its next tick. $1 name, $2 spec, $3 paused, $4 next tick.
INSERT INTO windlass.schedule AS s (name, spec, paused, next_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, paused = excluded.paused, next_at = excluded.next_at
