-- Idempotency keys, to be copied. ?1 and ?2 after this one, ?3 how many at most, ?4 how many to pass over. Index: primary key.
SELECT queue, key, task, expires_at
FROM key
WHERE (queue, key) > (?1, ?2)
ORDER BY queue, key
LIMIT ?3 OFFSET ?4
