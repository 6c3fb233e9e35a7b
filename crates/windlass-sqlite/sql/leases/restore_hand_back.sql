-- Ends a lease that was given before the restore. Index: primary key.
UPDATE task
SET
  state = iif(job IS NULL, 1, 3), ready_seq = iif(job IS NULL, ?1, NULL), attempt = max(attempt - 1, 0),
  cancel = NULL, log = ?2
WHERE id = ?3 AND state = 2
