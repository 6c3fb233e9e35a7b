-- Lanes in use that have a task, or whose queue is paused, as far as a bounded look reaches: nothing if a part stopped at
-- the bound. $1 bound. Index: lane_in_use, task_due, task_ready, task_suspect_waiting, task_running, task_job,
-- task_step, task_dead.
WITH seen AS MATERIALIZED (
  (SELECT t.lane, 0 AS part FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT $1)
  UNION ALL
  (SELECT t.lane, 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 ORDER BY t.lane LIMIT $1)
  UNION ALL
  (SELECT t.lane, 2 FROM windlass.task AS t WHERE t.state = 2 ORDER BY t.worker LIMIT $1)
  UNION ALL
  (SELECT t.lane, 3 FROM windlass.task AS t WHERE t.job IS NOT NULL AND t.state = 3 ORDER BY t.job LIMIT $1)
  UNION ALL
  (SELECT t.lane, 4 FROM windlass.task AS t WHERE t.workflow IS NOT NULL AND t.state = 4 ORDER BY t.workflow LIMIT $1)
  UNION ALL
  (SELECT t.lane, 6 FROM windlass.task AS t WHERE t.state = 6 ORDER BY t.ended_at LIMIT $1)
), used AS MATERIALIZED (
  SELECT s.lane FROM seen AS s GROUP BY s.lane
  UNION
  SELECT l.id FROM windlass.lane AS l
  WHERE NOT l.retired
    AND (
      EXISTS (SELECT 1 FROM windlass.paused_queue AS p WHERE p.queue = l.queue)
      OR EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 1 AND t.crashes < 2 AND t.lane = l.id OFFSET 0)
    )
)
SELECT ARRAY(SELECT u.lane FROM used AS u)
WHERE NOT EXISTS (SELECT 1 FROM seen AS s GROUP BY s.part HAVING count(*) >= $1)
