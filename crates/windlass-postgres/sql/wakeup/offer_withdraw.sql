-- Withdraws an offer; answers nothing if an enqueue has taken it. Waits for an enqueue that is about to take it. $1
-- listener, $2 claim number. Index: primary key.
UPDATE windlass.doorbell AS d SET worker = NULL WHERE d.listener = $1 AND d.claim_no = $2 AND d.worker IS NOT NULL
RETURNING d.listener
