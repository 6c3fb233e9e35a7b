-- A range of history rows, oldest first, with the bytes of each and whether it blocks a workflow.
-- Index: primary key, in order; workflow_blocked.
SELECT
  id, ended_at, length(payload) + coalesce(length(output), 0),
  EXISTS (SELECT 1 FROM workflow WHERE blocked_by = history.id)
FROM history
WHERE id > ?1 AND id < ?2
ORDER BY id
LIMIT ?3
