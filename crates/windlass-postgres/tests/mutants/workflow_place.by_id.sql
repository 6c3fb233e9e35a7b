-- Broken: steps are numbered in the order of their ids. Breaks WF-ORDER. Noticed by workflow_states::a_redriven_step_that_was_passed_goes_to_the_end, own::a_late_step_comes_after_those_committed_before_it
WITH added AS MATERIALIZED (
  SELECT t.id
  FROM unnest($1::text[]) AS u (name)
  CROSS JOIN LATERAL (
    SELECT t.id, t.ready_seq
    FROM windlass.task AS t
    WHERE t.workflow = u.name AND t.state <> 6 AND t.step IS NULL
  ) AS t
  ORDER BY t.ready_seq
), item AS MATERIALIZED (
  SELECT added.id, added.id AS step FROM added
)
UPDATE windlass.task AS t
SET step = item.step
FROM item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 4 AND t.step IS NULL
