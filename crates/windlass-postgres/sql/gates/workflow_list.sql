-- Workflows by name with their heads and unfinished steps, counted up to a bound. $1 after this name, $2 only blocked
-- ones, $3 only this one, $4 how many at most, $5 bound. Index: primary key, task_step.
SELECT w.name, w.on_failure, w.created_at, w.blocked_by, head.id, head.state, steps.n
FROM (
  SELECT w.name, w.on_failure, w.created_at, w.blocked_by
  FROM windlass.workflow AS w
  WHERE ($1::text IS NULL OR w.name > $1) AND ($3::text IS NULL OR w.name = $3) AND (NOT $2 OR w.blocked_by IS NOT NULL)
  ORDER BY w.name
  LIMIT $4
) AS w
LEFT JOIN LATERAL (
  SELECT t.id, t.state
  FROM windlass.task AS t
  WHERE t.workflow = w.name AND t.state <> 6 AND t.step IS NOT NULL AND w.blocked_by IS NULL
  ORDER BY t.step
  LIMIT 1
) AS head ON true
CROSS JOIN LATERAL (
  SELECT count(*) AS n
  FROM (SELECT 1 FROM windlass.task AS t WHERE t.workflow = w.name AND t.state <> 6 LIMIT $5) AS counted
) AS steps
ORDER BY w.name
