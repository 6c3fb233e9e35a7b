-- Broken: a held task never outranks a ready one. Breaks the order of a job. Noticed by jobs::a_task_that_outranks_a_ready_one_takes_its_place
SELECT u.name
FROM unnest($1::text[]) AS u (name)
WHERE false AND (
  SELECT t.priority
  FROM windlass.task AS t
  WHERE t.job = u.name AND t.state = 3 AND NOT t.parked AND NOT t.aside
  ORDER BY t.priority DESC, t.id
  LIMIT 1
) > (SELECT min(t.priority) FROM windlass.task AS t WHERE t.job = u.name AND t.state = 1)
