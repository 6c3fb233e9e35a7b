-- Whether a job has scheduled tasks. Index: task_later.
SELECT EXISTS (SELECT 1 FROM task WHERE job = ?1 AND state IN (0, 4) AND state = 0)
