-- How many tasks of each lane are in each state, as far as a bounded look reaches: one part per state, and whether it
-- stopped at the bound. $1 bound. Index: task_due, task_ready, task_suspect_waiting, task_running, task_job, task_step,
-- task_dead.
SELECT d.lane, d.state, count(*)
FROM (
  (SELECT t.lane, 0::smallint AS state FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT $1)
  UNION ALL
  (SELECT t.lane, 1::smallint FROM windlass.task AS t WHERE t.state = 1 AND t.crashes < 2 ORDER BY t.lane LIMIT $1)
  UNION ALL
  (SELECT t.lane, 1::smallint FROM windlass.task AS t WHERE t.state = 1 AND t.crashes >= 2 ORDER BY t.lane LIMIT $1)
  UNION ALL
  (SELECT t.lane, 2::smallint FROM windlass.task AS t WHERE t.state = 2 ORDER BY t.worker LIMIT $1)
  UNION ALL
  (SELECT t.lane, 3::smallint FROM windlass.task AS t WHERE t.job IS NOT NULL AND t.state = 3 ORDER BY t.job LIMIT $1)
  UNION ALL
  (SELECT t.lane, 4::smallint FROM windlass.task AS t WHERE t.workflow IS NOT NULL AND t.state = 4 ORDER BY t.workflow LIMIT $1)
  UNION ALL
  (SELECT t.lane, 6::smallint FROM windlass.task AS t WHERE t.state = 6 ORDER BY t.ended_at LIMIT $1)
) AS d
GROUP BY d.lane, d.state
ORDER BY d.lane, d.state
