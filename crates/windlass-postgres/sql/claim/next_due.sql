-- When the next scheduled task is due, or the next job must be looked at, and whether that time has passed. Index:
-- task_due, gate_todo_at.
SELECT d.at, d.at <= windlass.now_ms()
FROM (
  (SELECT t.due_at AS at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1)
  UNION ALL
  (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1)
) AS d
ORDER BY d.at
LIMIT 1
