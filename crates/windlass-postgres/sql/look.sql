-- How things stand where there is plenty to take, so that nobody asks why there is no more: when something is due next, and whether a
-- gate is to be looked at.
-- Indexes: task_due, gate_todo_at, primary key of freed.
SELECT
  least(
    (SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1),
    (SELECT g.at FROM windlass.gate_todo AS g WHERE g.at > 0 ORDER BY g.at LIMIT 1)
  ) AS next_due,
  EXISTS (SELECT 1 FROM windlass.gate_todo AS g WHERE g.at <= (SELECT windlass.now_ms()))
    OR EXISTS (SELECT 1 FROM windlass.freed) AS has_todo
