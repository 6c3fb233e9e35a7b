-- Makes a scheduled task ready. Index: primary key.
UPDATE task SET state = 1, due_at = NULL, ready_seq = ?1 WHERE id = ?2 AND state = 0
