-- Broken: steps go by their ids. Breaks WF-ORDER. Noticed by workflow_states::a_redriven_step_that_was_passed_goes_to_the_end
SELECT id, lane, state, priority, job, start_at, on_failure, crashes FROM task
WHERE workflow = ?1 AND ended_at IS NULL
ORDER BY id
LIMIT 1
