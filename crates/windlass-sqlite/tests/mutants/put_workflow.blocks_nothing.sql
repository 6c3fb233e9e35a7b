-- Broken: a failed step holds nothing up. Breaks WF-ORDER. Noticed by workflow_states::a_failed_step_blocks_the_rest_until_an_operator_decides
UPDATE workflow SET blocked_by = iif(?2, NULL, NULL), forgiven_step = ?3 WHERE name = ?1
