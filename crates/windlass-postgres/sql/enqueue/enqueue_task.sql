-- Adds one task inside the caller's transaction. $1 kind, $2 encoding, $3 payload, $4 queue, $5 job, $6 workflow,
-- $7 priority, $8 due time, $9 delay, $10 key, $11 whether a conflict is ignored, $12 attempts, $13 time limit, $14
-- retry policy, $15 what a failure means for its workflow, $16 the limit of its job if that is new, $17 its trace or
-- NULL. The function reads the trace from a setting of the transaction, so it is set first (LATERAL); it holds for the
-- rest of the transaction.
SELECT e.task, e.existing, CASE WHEN $16::integer IS NOT NULL AND NOT e.existing THEN windlass.limit_new_job($5, $16) END
FROM (SELECT CASE WHEN $17::text IS NULL THEN '' ELSE set_config('w3c.traceparent', $17, true) END AS trace) AS s
CROSS JOIN LATERAL windlass.enqueue_task(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, CASE WHEN s.trace IS NOT NULL THEN $14 END, $15
) AS e
