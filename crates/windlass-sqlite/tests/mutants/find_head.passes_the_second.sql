-- Broken: the step behind a head that has its turn has its turn too. Breaks WF-ORDER. Noticed by workflows::steps_run_one_at_a_time_in_the_order_of_append
SELECT id, lane, state, priority, job, start_at, on_failure, crashes FROM task
WHERE workflow = ?1 AND ended_at IS NULL AND state = 4
ORDER BY step
LIMIT 1
