-- When the next scheduled task is due, and whether that time has come. Index: task_due.
SELECT t.due_at, t.due_at <= windlass.now_ms() FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1
