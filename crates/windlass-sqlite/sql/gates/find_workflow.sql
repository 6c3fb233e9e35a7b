-- One workflow. Index: primary key.
SELECT name, on_failure, blocked_by, forgiven_step, created_at FROM workflow
WHERE name = ?1
