-- Ready tasks of a job up to an id. Index: task_admitted, in order.
SELECT id FROM task
WHERE job = ?1 AND state = 1 AND id <= ?2
ORDER BY lane, priority DESC, ready_seq
LIMIT ?3
