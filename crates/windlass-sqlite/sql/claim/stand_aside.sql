-- Takes a ready suspect out of the line, and out of that of its job. Index: primary key.
UPDATE task SET state = 3, ready_seq = NULL, aside = 1 WHERE id = ?1 AND state = 1
