-- An idle worker offers to take the next task that comes alone; answers nothing if its bell is not armed, or if versions of rows that a long
-- transaction keeps have made the table large: every enqueue reads it. $1 listener, $2 worker, $3 claim number, $4 the lanes that the
-- worker serves, $5 the channel that only this process knows, $6 the lock that it holds. Index: primary key.
UPDATE windlass.doorbell AS d
SET worker = $2, claim_no = $3, offered = $4, whisper = $5, presence = $6
WHERE d.listener = $1 AND d.armed_until > windlass.now_ms() AND pg_relation_size('windlass.doorbell') < 1048576
RETURNING d.listener
