-- Ends an attempt; the next is due later. Index: primary key.
UPDATE task
SET state = 0, due_at = ?1, attempt = ?2, crashes = 0, error = coalesce(?3, error), log = ?4, cancel = NULL
WHERE id = ?5 AND lease = ?6 AND worker = ?7 AND state = 2
