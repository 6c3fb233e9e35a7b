-- Kept tasks between two ids, newest first; the caller bounds the range. Parameters as in list_task.sql, and $13 when
-- the lower id was drawn. Index: history_id of every part that can hold them, in order.
SELECT {history_record: whole = $12}
FROM windlass.history AS h JOIN windlass.lane AS l ON l.id = h.lane
WHERE h.id < $1 AND h.id >= $2 AND h.ended_at >= $13
  AND {listed: task = h}
ORDER BY h.id DESC
LIMIT $8
