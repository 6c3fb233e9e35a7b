-- Ends an attempt without spending it; the task is ready again, at the end of the line, or held by its job.
-- Index: primary key.
UPDATE task
SET state = ?8, ready_seq = ?1, attempt = ?2, crashes = ?3, suspect = ?9, log = ?4, cancel = NULL
WHERE id = ?5 AND lease = ?6 AND worker = ?7 AND state = 2
