-- Sets a ready suspect aside: it leaves the ready line and that of its job. Index: primary key.
UPDATE task SET state = 3, ready_seq = NULL, aside = 1 WHERE id = ?1 AND state = 1
