-- Makes the rows of workflows that have unfinished steps and no row; the first step gives the policy. $1 names in
-- order. Index: primary key of workflow, task_step.
INSERT INTO windlass.workflow (name, created_at, on_failure)
SELECT u.name, windlass.now_ms(), coalesce(first.on_failure, 0)
FROM unnest($1::text[]) WITH ORDINALITY AS u (name, place)
CROSS JOIN LATERAL (
  SELECT t.on_failure
  FROM windlass.task AS t
  WHERE t.workflow = u.name AND t.state <> 6
  ORDER BY t.step, t.ready_seq
  LIMIT 1
) AS first
WHERE NOT EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = u.name)
ORDER BY u.place
ON CONFLICT (name) DO NOTHING
