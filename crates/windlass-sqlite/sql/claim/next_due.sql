-- When the next scheduled task is due. Index: task_due.
SELECT due_at FROM task WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1
