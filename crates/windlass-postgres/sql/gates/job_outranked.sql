-- Jobs that have a held task with a higher priority than their least ready task. $1 locked jobs. Index: task_job.
SELECT u.name
FROM unnest($1::text[]) AS u (name)
WHERE (
  SELECT t.priority
  FROM windlass.task AS t
  WHERE t.job = u.name AND t.state = 3 AND NOT t.parked AND NOT t.aside
  ORDER BY t.priority DESC, t.id
  LIMIT 1
) > (SELECT min(t.priority) FROM windlass.task AS t WHERE t.job = u.name AND t.state = 1)
