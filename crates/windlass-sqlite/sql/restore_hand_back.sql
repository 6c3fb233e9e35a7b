-- Ends a lease that belongs to another past. Index: primary key.
UPDATE task
SET state = 1, ready_seq = ?1, attempt = max(attempt - 1, 0), cancel = NULL, log = ?2
WHERE id = ?3 AND state = 2
