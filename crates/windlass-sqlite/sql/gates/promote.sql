-- Makes a scheduled task ready, or held if it has a job. Index: primary key.
UPDATE task SET state = ?3, due_at = NULL, ready_seq = ?1 WHERE id = ?2 AND state = 0
