-- Removes a dead task. Index: primary key.
DELETE FROM task WHERE id = ?1 AND state = 6
