-- Marks a job for removal, with the tasks that it has now. $1 name. Index: primary key, gate_todo_key.
WITH stale AS MATERIALIZED (
  -- The time at which it wanted its next turn. Skip a locked row: the transaction that has it waits for this job.
  SELECT g.ctid AS place FROM windlass.gate_todo AS g
  WHERE (g.kind > 1 OR g.at > 0) AND g.key = $1 AND g.kind = 0 AND g.at > 0
  FOR UPDATE SKIP LOCKED
), forgotten AS (
  DELETE FROM windlass.gate_todo AS g WHERE g.ctid = ANY (ARRAY(SELECT place FROM stale))
)
UPDATE windlass.job AS j
SET state = 3, gone_before = windlass.task_id(windlass.now_ms(), nextval('windlass.seq'))
WHERE j.name = $1
RETURNING j.gone_before
