-- Gives a dead step that its workflow has passed a fresh budget, as the last step of the workflow.
-- Index: primary key.
UPDATE task
SET state = 4, start_at = ?1, step = ?4, ended_at = NULL, attempt = 0, crashes = 0, log = ?2
WHERE id = ?3 AND state = 6
