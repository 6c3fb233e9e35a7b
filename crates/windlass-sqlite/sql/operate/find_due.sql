-- Due tasks, the most overdue first. Index: task_due, in order.
SELECT id, lane, priority, job, crashes FROM task
WHERE due_at IS NOT NULL AND due_at <= ?1
ORDER BY due_at
LIMIT ?2
