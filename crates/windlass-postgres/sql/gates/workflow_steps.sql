-- Unfinished steps of workflows. $1 names, $2 whether steps that have no number yet count, $3 how many at most. Index:
-- task_step.
SELECT t.id, t.state
FROM unnest($1::text[]) AS u (name)
CROSS JOIN LATERAL (
  SELECT t.id, t.state
  FROM windlass.task AS t
  WHERE t.workflow = u.name AND t.state <> 6 AND ($2 OR t.step IS NOT NULL)
  ORDER BY t.step, t.ready_seq
  LIMIT $3
) AS t
