-- Takes a ready task back. Index: primary key.
UPDATE task SET state = 3, ready_seq = NULL WHERE id = ?1 AND state = 1
