-- Broken: a blocked workflow goes on. Breaks WF-ORDER. Noticed by workflow_states::a_failed_step_blocks_the_rest_until_an_operator_decides
SELECT name, on_failure, NULL, forgiven_step, created_at FROM workflow
WHERE name = ?1
