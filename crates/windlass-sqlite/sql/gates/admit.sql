-- Makes a held task ready. Index: primary key.
UPDATE task SET state = 1, ready_seq = ?1 WHERE id = ?2 AND state = 3
