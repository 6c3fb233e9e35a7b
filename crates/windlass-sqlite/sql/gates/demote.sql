-- Makes a ready task held again. Index: primary key.
UPDATE task SET state = 3, ready_seq = NULL WHERE id = ?1 AND state = 1
