-- Workflows for a copy, after ?1. ?2 at most so many, ?3 skip so many. Index: primary key.
SELECT name, on_failure, blocked_by, forgiven_step, created_at
FROM workflow
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
