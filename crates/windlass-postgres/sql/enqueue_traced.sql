-- The same as enqueue_task.sql for a task that is traced. $17 its trace, which holds for the rest of the transaction: the
-- function reads it from there, so that its arguments stay what callers know. LATERAL, so that it is set first.
SELECT e.task, e.existing, CASE WHEN $16::integer IS NOT NULL AND NOT e.existing THEN windlass.limit_new_job($5, $16) END
FROM (SELECT set_config('w3c.traceparent', $17, true) AS trace) AS s
CROSS JOIN LATERAL windlass.enqueue_task(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, CASE WHEN s.trace IS NOT NULL THEN $14 END, $15
) AS e
