-- Creates a workflow, if there is none of that name. Index: primary key.
INSERT INTO workflow (name, on_failure, blocked_by, forgiven_step, created_at) VALUES (?1, ?2, NULL, NULL, ?3)
ON CONFLICT (name) DO NOTHING
