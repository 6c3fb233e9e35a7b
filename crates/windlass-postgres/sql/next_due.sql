-- When the next scheduled task is due. Index: task_due.
SELECT t.due_at FROM windlass.task AS t WHERE t.state = 0 ORDER BY t.due_at LIMIT 1
