-- Adds one task inside the transaction of whoever calls. $1 kind, $2 encoding, $3 payload, $4 queue, $5 job, $6 workflow,
-- $7 priority, $8 due time, $9 delay, $10 key, $11 whether a conflict is ignored, $12 attempts, $13 time limit, $14 retry policy,
-- $15 what a failure means for its workflow, $16 the limit of its job if that is new.
SELECT e.task, e.existing, CASE WHEN $16::integer IS NOT NULL AND NOT e.existing THEN windlass.limit_new_job($5, $16) END
FROM windlass.enqueue_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS e
