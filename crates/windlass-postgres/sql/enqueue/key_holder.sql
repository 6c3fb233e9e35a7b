-- The task that a key belongs to, while that is remembered. $1 queue, $2 key. Index: primary key of key, of task,
-- history_id.
SELECT k.task
FROM windlass.key AS k
WHERE k.queue = $1 AND k.key = $2
  AND (
    k.expires_at IS NULL OR k.expires_at > windlass.now_ms()
    -- Not as EXISTS, which the planner may answer from all tasks at once.
    OR (SELECT t.id FROM windlass.task AS t WHERE t.id = k.task) IS NOT NULL
    OR (SELECT h.id FROM windlass.history AS h WHERE h.id = k.task ORDER BY h.id LIMIT 1) IS NOT NULL
  )
