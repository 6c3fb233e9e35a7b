-- The head of a lane's ready line, without touching the rows. Index: task_ready, covering.
SELECT priority, ready_seq FROM task
WHERE lane = ?1 AND state = 1 AND crashes < 2
ORDER BY priority DESC, ready_seq
LIMIT ?2 OFFSET ?3
