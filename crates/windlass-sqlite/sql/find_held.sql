-- The held tasks of a job in a lane, the best first. Index: task_held, in order.
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 3
ORDER BY priority DESC, id
LIMIT ?3
