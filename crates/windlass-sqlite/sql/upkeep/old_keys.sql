-- Expired keys, and whether the history still keeps their tasks. Index: key_expires, in order.
SELECT
  queue, key,
  EXISTS (SELECT 1 FROM history WHERE history.id = key.task)
    OR EXISTS (SELECT 1 FROM task WHERE task.id = key.task) AS kept
FROM key
WHERE expires_at IS NOT NULL AND expires_at <= ?1
ORDER BY expires_at
LIMIT ?2
