-- Removes a range of history rows that ended long enough ago and block no workflow. Index: primary key;
-- workflow_blocked.
DELETE FROM history
WHERE id > ?1 AND id <= ?2 AND ended_at <= ?3
  AND NOT EXISTS (SELECT 1 FROM workflow WHERE blocked_by = history.id)
