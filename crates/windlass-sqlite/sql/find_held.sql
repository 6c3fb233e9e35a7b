-- The held tasks of a job in a lane, the best first. Index: task_job, in order.
SELECT id, priority, crashes, ready_seq FROM task
WHERE job = ?1 AND lane = ?2 AND state = 3 AND ended_at IS NULL
ORDER BY priority DESC, ready_seq, id
LIMIT ?3
