-- Changes a job that is held. $1 name, $2 and $3 whether and what limit, $4 and $5 whether and what delay, $6 state. Answers its state
-- and whether it has a delay. Index: primary key.
UPDATE windlass.job AS j
SET
  concurrency = CASE WHEN $2 THEN $3 ELSE j.concurrency END,
  delay_ms = CASE WHEN $4 THEN $5 ELSE j.delay_ms END,
  state = coalesce($6, j.state)
WHERE j.name = $1
RETURNING j.state, j.delay_ms IS NOT NULL
