-- The first unfinished step of a workflow. Index: task_step, in order.
SELECT id, lane, state, priority, job, start_at, on_failure, crashes FROM task
WHERE workflow = ?1 AND ended_at IS NULL
ORDER BY step
LIMIT 1
