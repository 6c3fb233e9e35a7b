-- Tasks of a job that neither run nor have ended, up to an id. Index: task_job, in order.
SELECT id FROM task
WHERE job = ?1 AND ended_at IS NULL AND state IN (0, 1, 3, 4) AND id <= ?2
ORDER BY lane, state, priority DESC, ready_seq
LIMIT ?3
