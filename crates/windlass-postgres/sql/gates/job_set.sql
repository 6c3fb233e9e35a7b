-- Changes a locked job. $1 name, $2 and $3 whether and what limit, $4 and $5 whether and what delay, $6 state. Answers
-- its state and whether it has a delay. Index: primary key, gate_todo_key.
WITH stale AS MATERIALIZED (
  -- The time at which it wanted its next turn. Skip a locked row: the transaction that has it waits for this job.
  SELECT g.ctid AS place FROM windlass.gate_todo AS g
  WHERE (g.kind > 1 OR g.at > 0) AND g.key = $1 AND g.kind = 0 AND g.at > 0
  FOR UPDATE SKIP LOCKED
), forgotten AS (
  DELETE FROM windlass.gate_todo AS g WHERE g.ctid = ANY (ARRAY(SELECT place FROM stale))
)
UPDATE windlass.job AS j
SET
  concurrency = CASE WHEN $2 THEN $3 ELSE j.concurrency END,
  delay_ms = CASE WHEN $4 THEN $5 ELSE j.delay_ms END,
  state = coalesce($6, j.state)
WHERE j.name = $1
RETURNING j.state, j.delay_ms IS NOT NULL
