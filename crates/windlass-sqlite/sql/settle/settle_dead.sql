-- Ends an attempt and the task with it. Index: primary key.
UPDATE task
SET state = 6, ended_at = ?1, attempt = ?2, crashes = ?3, error = ?4, log = ?5, cancel = NULL
WHERE id = ?6 AND lease = ?7 AND worker = ?8 AND state = 2
