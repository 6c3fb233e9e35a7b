-- Takes an offer back; answers nothing if somebody has taken it. Waits for whoever is about to. $1 listener, $2 claim number.
-- Index: primary key.
UPDATE windlass.doorbell AS d SET worker = NULL WHERE d.listener = $1 AND d.claim_no = $2 AND d.worker IS NOT NULL
RETURNING d.listener
