-- The ready tasks of a job in a lane, the least first. Index: task_admitted, backwards.
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 1
ORDER BY priority, ready_seq DESC
LIMIT ?3
