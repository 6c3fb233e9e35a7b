-- A stretch of kept tasks, oldest first, with the bytes of each. Index: primary key, in order.
SELECT id, ended_at, length(payload) + coalesce(length(output), 0) FROM history
WHERE id > ?1 AND id < ?2
ORDER BY id
LIMIT ?3
