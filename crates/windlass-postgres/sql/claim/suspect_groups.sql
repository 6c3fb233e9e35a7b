-- Groups of suspects that wait in open lanes. For each: the most crashes, whether a suspect of it with a job is ready,
-- and whether one stands aside. $1 lanes. Index: task_suspect_waiting.
SELECT coalesce(t.suspect, 0), max(t.crashes), bool_or(t.state = 1 AND t.job IS NOT NULL), bool_or(t.state = 3)
FROM windlass.task AS t JOIN windlass.lane AS l ON l.id = t.lane
WHERE t.crashes >= 2 AND (t.state = 1 OR (t.state = 3 AND t.aside)) AND t.lane = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
GROUP BY 1
