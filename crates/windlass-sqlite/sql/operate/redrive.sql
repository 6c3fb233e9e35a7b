-- Gives a dead task a fresh budget of attempts. Index: primary key.
UPDATE task
SET state = 0, due_at = ?1, ended_at = NULL, attempt = 0, crashes = 0, log = ?2
WHERE id = ?3 AND state = 6
