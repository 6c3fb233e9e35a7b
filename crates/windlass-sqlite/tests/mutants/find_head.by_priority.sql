-- Broken: steps go by priority. Breaks WF-ORDER. Noticed by workflows::priority_does_not_reorder_steps
SELECT id, lane, state, priority, job, start_at, on_failure, crashes FROM task
WHERE workflow = ?1 AND ended_at IS NULL
ORDER BY priority DESC, step
LIMIT 1
