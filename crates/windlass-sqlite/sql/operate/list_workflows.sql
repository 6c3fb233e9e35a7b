-- Workflows by name, all or only the blocked ones. Index: primary key, in order.
SELECT name, on_failure, blocked_by, forgiven_step, created_at FROM workflow
WHERE name > ?1 AND (?3 = 0 OR blocked_by IS NOT NULL)
ORDER BY name
LIMIT ?2
