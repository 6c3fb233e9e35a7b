-- Says that a job is to be forgotten; what is there now goes with it. $1 name. Index: primary key.
UPDATE windlass.job AS j
SET state = 3, gone_before = windlass.task_id(windlass.now_ms(), nextval('windlass.seq'))
WHERE j.name = $1
RETURNING j.gone_before
