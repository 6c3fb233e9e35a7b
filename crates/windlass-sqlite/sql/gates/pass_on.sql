-- Gives a waiting step its turn. Index: primary key.
UPDATE task SET state = ?1, due_at = ?2, ready_seq = ?3, start_at = NULL WHERE id = ?4 AND state = 4
