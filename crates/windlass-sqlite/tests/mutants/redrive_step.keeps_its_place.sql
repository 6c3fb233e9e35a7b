-- Broken: a step that its workflow has passed goes before those that wait. Breaks WF-ORDER. Noticed by workflow_states::a_redriven_step_that_was_passed_goes_to_the_end
UPDATE task
SET state = 4, start_at = ?1, step = iif(?4, step, step), ended_at = NULL, attempt = 0, crashes = 0, log = ?2
WHERE id = ?3 AND state = 6
