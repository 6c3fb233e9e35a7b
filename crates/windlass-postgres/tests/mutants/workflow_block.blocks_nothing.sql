-- Broken: a failed step does not block its workflow. Breaks WF-ORDER. Noticed by workflow_states::a_failed_step_blocks_the_rest_until_an_operator_decides
UPDATE windlass.workflow AS w
SET blocked_by = u.task
FROM unnest($1::text[], $2::bigint[]) AS u (name, task)
WHERE w.name = ANY (ARRAY[u.name]) AND w.blocked_by IS NOT NULL
