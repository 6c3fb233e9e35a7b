-- Idempotency keys for a copy, after (?1, ?2). ?3 at most so many, ?4 skip so many. Index: primary key.
SELECT queue, key, task, expires_at
FROM key
WHERE (queue, key) > (?1, ?2)
ORDER BY queue, key
LIMIT ?3 OFFSET ?4
