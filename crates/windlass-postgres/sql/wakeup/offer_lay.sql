-- An idle worker offers to take the next task that is enqueued alone. Answers nothing if its doorbell is not armed.
-- Answers nothing if a long transaction keeps old versions of rows that have made the table large: every enqueue reads
-- the table. $1 listener, $2 worker, $3 claim number, $4 the lanes that the worker serves, $5 the private channel of
-- its process, $6 the lock that the process holds. Index: primary key.
UPDATE windlass.doorbell AS d
SET worker = $2, claim_no = $3, offered = $4, whisper = $5, presence = $6
WHERE d.listener = $1 AND d.armed_until > windlass.now_ms() AND pg_relation_size('windlass.doorbell') < 1048576
RETURNING d.listener
