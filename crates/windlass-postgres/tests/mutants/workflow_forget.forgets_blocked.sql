-- Broken: a blocked workflow is forgotten with its last step. Breaks NO-STRANDED. Noticed by workflow_states::a_skip_of_the_last_step_ends_the_workflow
DELETE FROM windlass.workflow AS w
WHERE w.name = ANY ($1)
  AND NOT EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.workflow = w.name AND t.state <> 6 OFFSET 0)
