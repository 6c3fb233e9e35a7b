-- Creates or replaces a schedule; its last tick and task stay. Index: primary key.
INSERT INTO schedule (name, spec, paused, next_at, last_at, last_task) VALUES (?1, ?2, ?3, ?4, NULL, NULL)
ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, paused = excluded.paused, next_at = excluded.next_at
