-- Workflows, to be copied. ?1 after this one, ?2 how many at most, ?3 how many to pass over. Index: primary key.
SELECT name, on_failure, blocked_by, forgiven_step, created_at
FROM workflow
WHERE name > ?1
ORDER BY name
LIMIT ?2 OFFSET ?3
